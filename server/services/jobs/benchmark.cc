#include "server/services/jobs/benchmark.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/target/target.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/median.h"
#include "runtime/base/memory_file.h"
#include "runtime/npz/npz.h"
#include "runtime/package/metadata.h"
#include "server/services/jobs/child_run.h"
#include "server/services/store/package_archive.h"

namespace tensormill::server {

namespace {

constexpr std::chrono::milliseconds kKeepAlive{500};
constexpr std::chrono::milliseconds kRoofTime{60'000};  // less than a second where nothing else runs
/// What is measured is no stranger's, and takes some megabytes a thread, whatever packages may take.
constexpr uint64_t kRoofMemory = uint64_t{4} << 30;

/// What this machine can do at most with so many threads of the target's vectors (measure/roof.h); null where
/// the child that measures it gives no answer: the benchmark stands without.
Json roof_of(jobs::JobContext& context, parallel::ThreadPool& pool, const std::string& target, int threads,
             uint64_t memory) {
  const target::CpuFacts facts = target::parse_target(target, {}).facts;
  const Json request = {
      {"threads", threads}, {"vector_bits", facts.vector_bits}, {"l2_bytes", facts.l2_bytes}};
  const FileDescriptor requests = memory_file("request", request.dump() + "\n");
  const FileDescriptor code = memory_file("code"), tensors = memory_file("tensors");
  jobs::ChildSpec spec;
  spec.command = "child-measure";
  spec.descriptors = {requests.get(), code.get(), tensors.get()};
  spec.folder = "/";
  spec.limits.kind = jobs::ChildKind::kMeasure;
  spec.limits.nice = jobs::kMeasureNice;
  spec.limits.data_bytes = std::max(memory, kRoofMemory);
  spec.time_limit = kRoofTime;
  std::string answer;
  const auto take = [&](const std::string& type, const std::string& json) {
    if (type != "measured") return false;
    answer = json;
    return true;
  };
  const parallel::Lease lease = lease_cores(pool, threads, context);
  const auto quiet = context.quiet();
  try {
    context.run_child(std::move(spec), take);
  } catch (const Error& error) {
    context.log("the machine's limits were not measured: " + error.message());
    return {};
  }
  const Json roof = answer.empty() ? Json() : parse_json(answer);
  return roof.contains("gflops") ? roof : Json();
}

}  // namespace

Json summary_of(std::vector<double> runs) {
  TM_CHECK(!runs.empty(), "a benchmark without runs");
  const auto count = static_cast<double>(runs.size());
  const double mean = std::accumulate(runs.begin(), runs.end(), 0.0) / count;
  double squares = 0;
  for (const double run : runs) squares += (run - mean) * (run - mean);
  return {{"mean_ms", mean},
          {"median_ms", median(runs)},
          {"max_ms", *std::max_element(runs.begin(), runs.end())},
          {"min_ms", *std::min_element(runs.begin(), runs.end())},
          {"std_ms", std::sqrt(squares / count)},
          {"runs_ms", std::move(runs)}};
}

parallel::Lease lease_cores(parallel::ThreadPool& pool, int threads, jobs::JobContext& context) {
  while (true) {
    context.keep_alive();
    try {
      return pool.lease(std::min(threads, pool.cores()), std::chrono::steady_clock::now() + kKeepAlive);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadlineExceeded) throw;
    }
  }
}

PackageTiming benchmark_package(jobs::JobContext& context, parallel::ThreadPool& pool,
                                const std::vector<int>& members, const BenchmarkRequest& request,
                                const BenchmarkOptions& options) {
  const FileDescriptor feed = memory_file("inputs", npz::write_npz(std::vector<npz::NamedTensor>{}));
  const FileDescriptor answer = memory_file("outputs");
  ChildRun run;
  run.options.fill_mode = request.fill_mode;
  run.options.repeat = request.repeat;
  // One run alone would not be timed apart from the first, which pays for page faults.
  run.options.number = std::max(request.number, request.repeat > 1 ? 1 : 2);
  run.options.profile = request.profile;
  run.threads = request.threads;
  run.memory = options.memory;
  run.timeout = options.timeout;
  run.nice = jobs::kMeasureNice;
  run.dims = request.dims;
  jobs::ChildSpec spec = child_run_spec(members, feed, answer, run);
  spec.time_limit = options.timeout;
  const parallel::Lease lease = lease_cores(pool, request.threads, context);
  const auto quiet = context.quiet();
  const Json timing = parse_json(context.run_child(std::move(spec)));
  return {timing.at("runs_ms").get<std::vector<double>>(), timing.value("profile", Json())};
}

storage::JobFinish BenchmarkRunner::run(jobs::JobContext& context) {
  const Json resolved = parse_json(context.job().resolved);
  const MemberBlobs members = desk_.open_members(context, resolved);
  const int asked = resolved.at("threads").get<int>();
  const int threads = asked > 0 ? asked : pool_.cores();
  context.progress(R"({"stage":"measure","done":0,"total":1})");
  Json result =
      summary_of(benchmark_package(
                     context, pool_, descriptors_of(members),
                     {resolved.at("repeat").get<int>(), resolved.at("number").get<int>(), threads}, options_)
                     .runs_ms);
  const auto metadata = MappedFile::map(descriptors_of(members).front(), "metadata.json");
  result["roof"] =
      roof_of(context, pool_, package::metadata_from_json(metadata->text()).target, threads, options_.memory);
  context.progress(R"({"stage":"measure","done":1,"total":1})");
  result["package"] = resolved.at("package");
  result["threads"] = threads;
  storage::JobFinish finish;
  finish.result = result.dump();
  return finish;
}

}  // namespace tensormill::server
