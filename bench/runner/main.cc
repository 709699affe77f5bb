/// Runs one package on request, so that a benchmark measures runs and not the start of a process.
///
///   bench_runner PACKAGE.tar INPUTS.npz THREADS    or    bench_runner probe
///
/// Prints a JSON line when it is ready, then one for each line that it reads:
///   run RUNS MS MAX_MS    runs until RUNS runs and MS milliseconds are over, or MAX_MS are: {"us":[…]}
///   peak                  {"peak_kib":…}: the largest resident memory so far
///   write FILE.npz        the outputs of the last run: {}
///   profile RUNS          {"steps":[{"name":…,"us":…,"flops":…}]}, medians over the runs
///   probe THREADS SECONDS {"gflops":…,"bits":…}: the FMA peak
/// The end of its input ends it. An error is one line on stderr and exit code 3.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "bench/support/fma_probe.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/median.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/npz/npz.h"
#include "runtime/package/package_reader.h"
#include "runtime/parallel/thread_pool.h"

namespace tensormill::bench {

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

class Runner {
public:
  Runner(const std::string& package, const std::string& inputs, int threads)
      : pool_(threads),
        executor_(package::LoadedPackage::load(package::Package::open(package)), {.max_threads = threads}) {
    options_.threads = threads;
    const auto file = MappedFile::open(inputs);
    for (const npz::NamedTensor& entry : npz::read_npz(file->bytes())) {
      executor_.set_input(entry.name, {entry.tensor.dtype(), entry.tensor.shape(), entry.tensor.data()});
    }
  }

  Json run(int64_t runs, double ms, double max_ms) {
    std::vector<double> times;
    const Clock::time_point start = Clock::now();
    Clock::time_point before = start;
    Milliseconds elapsed{};
    do {
      executor_.run(pool_, options_);
      const Clock::time_point after = Clock::now();
      times.push_back(std::chrono::duration<double, std::micro>(after - before).count());
      before = after;
      elapsed = after - start;
    } while (elapsed.count() < max_ms && (elapsed.count() < ms || static_cast<int64_t>(times.size()) < runs));
    return {{"us", times}};
  }

  Json profile(int64_t runs) {
    std::vector<exec::StepTime> profile;
    exec::RunOptions options = options_;
    options.profile = &profile;
    const std::vector<package::Step>& steps = executor_.plan().steps;
    std::vector<std::vector<double>> times(steps.size());
    for (int64_t i = 0; i < runs; ++i) {
      executor_.run(pool_, options);
      for (const exec::StepTime& time : profile)
        times[time.step].push_back(static_cast<double>(time.duration_ns) / 1e3);
    }
    Json rows = Json::array();
    for (size_t i = 0; i < steps.size(); ++i) {
      rows.push_back({{"name", steps[i].name},
                      {"us", median(times[i])},
                      {"flops", steps[i].flops},
                      {"bytes", steps[i].bytes}});
    }
    return {{"steps", rows}};
  }

  Json write(const std::string& path) const {
    std::vector<npz::NamedView> views;
    for (size_t i = 0; i < executor_.outputs().size(); ++i)
      views.push_back({executor_.outputs()[i].name, executor_.output(i)});
    write_file(path, npz::write_npz(views));
    return Json::object();
  }

private:
  parallel::ThreadPool pool_;
  exec::GraphExecutor executor_;
  exec::RunOptions options_;
};

/// VmHWM of /proc/self/status: largest resident size, mapped files included.
Json peak() {
  std::ifstream status("/proc/self/status");
  std::string word;
  int64_t kib = 0;
  while (status >> word) {
    if (word == "VmHWM:" && status >> kib) return {{"peak_kib", kib}};
  }
  throw Error(ErrorCode::kNotFound, "/proc/self/status has no VmHWM");
}

Json answer(std::optional<Runner>& runner, const std::string& line) {
  std::istringstream words(line);
  std::string command, path;
  int64_t count = 0;
  double first = 0, second = 0;
  words >> command;
  if (command == "probe" && words >> count >> first && count > 0)
    return {{"gflops", fma_peak_gflops(static_cast<int>(count), first)}, {"bits", fma_probe_bits()}};
  if (command == "peak") return peak();
  if (runner && command == "run" && words >> count >> first >> second)
    return runner->run(count, first, second);
  if (runner && command == "profile" && words >> count && count > 0) return runner->profile(count);
  if (runner && command == "write" && words >> path) return runner->write(path);
  throw Error(ErrorCode::kUsage, "not a request: " + line);
}

int serve(int argc, char** argv) {
  std::optional<Runner> runner;
  if (argc == 4) {
    runner.emplace(argv[1], argv[2], std::max(1, std::stoi(argv[3])));
  } else if (argc != 2 || std::string(argv[1]) != "probe") {
    throw Error(ErrorCode::kUsage, "bench_runner PACKAGE.tar INPUTS.npz THREADS, or bench_runner probe");
  }
  std::cout << "{}" << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) std::cout << answer(runner, line).dump() << std::endl;
  return 0;
}

}  // namespace

}  // namespace tensormill::bench

int main(int argc, char** argv) {
  try {
    return tensormill::bench::serve(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 3;
  }
}
