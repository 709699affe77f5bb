// bench_kernels [--net NAME] [--layer PART] [--batch N] [--winograd 2|4] [--target TEXT] [--threads N]
//               [--blocks N] [--cold] [--verify] [--asm] [--schedule] [--out FOLDER]
// Times single layers, with their epilogue and warm buffers, against the FMA peak of the same seconds. With
// --cold the weights come from memory, as in a network. Writes
// kernels.json and kernels.md to FOLDER (bench/results).
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "bench/kernels/bars.h"
#include "bench/support/fma_probe.h"
#include "bench/support/read_probe.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::bench {

namespace {

constexpr size_t kFarBytes = size_t{64} << 20;     // past every L2 cache
constexpr int64_t kColdBytes = int64_t{96} << 20;  // what a large network has
constexpr double kProbeSeconds = 0.1;

struct Options {
  std::string net, layer, target = "native", out = "bench/results";
  int64_t batch = 1, tile = 0;
  MeasureOptions measure;
  bool verify = false, cold = false, assembly = false, schedule = false;
};

Options parse(const std::vector<std::string>& args) {
  Options options;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& name = args[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == args.size()) throw Error(ErrorCode::kInvalidArgument, name + " needs a value");
      return args[++i];
    };
    if (name == "--net")
      options.net = value();
    else if (name == "--layer")
      options.layer = value();
    else if (name == "--batch")
      options.batch = std::stoi(value());
    else if (name == "--winograd")
      options.tile = std::stoi(value());
    else if (name == "--target")
      options.target = value();
    else if (name == "--out")
      options.out = value();
    else if (name == "--threads")
      options.measure.threads = std::stoi(value());
    else if (name == "--blocks")
      options.measure.blocks = std::stoi(value());
    else if (name == "--verify")
      options.verify = true;
    else if (name == "--cold")
      options.cold = true;
    else if (name == "--asm")
      options.assembly = true;
    else if (name == "--schedule")
      options.schedule = true;
    else
      throw Error(ErrorCode::kInvalidArgument, "unknown option " + name);
  }
  if (options.measure.threads < 1 || options.measure.threads > kMaxWorkers || options.measure.blocks < 1 ||
      options.batch < 1)
    throw Error(ErrorCode::kInvalidArgument, "--threads, --blocks and --batch are 1 or more");
  if (options.tile != 0 && options.tile != 2 && options.tile != 4)
    throw Error(ErrorCode::kInvalidArgument, "--winograd is 2 or 4");
  return options;
}

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

std::string markdown_row(const Row& row) {
  return "| " + row.layer.net + " | " + row.layer.name + " | " + std::to_string(row.layer.count) + " | " +
         row.layer.algorithm + " | " + format("%.1f", row.timing.microseconds) + " | " +
         format("%.1f", row.timing.gflops) + " | " + format("%.1f", 100 * row.timing.peak_fraction) + " | " +
         format("%.1f", row.bytes / row.timing.microseconds / 1e3) + " | " + row.bound + " |";
}

std::string markdown(const std::vector<Row>& rows, const Json& facts) {
  std::string text = "# Kernels alone\n\n`" + facts.dump() + "`\n\n";
  text += "| net | layer | count | algorithm | µs | GFLOP/s | % of FMA peak | GB/s | bound |\n";
  text += "|---|---|---|---|---|---|---|---|---|\n";
  for (const Row& row : rows) text += markdown_row(row) + "\n";
  const std::vector<Bar> bars = kernel_bars(rows);
  return bars.empty() ? text : text + "\n" + bars_table(bars);
}

Json to_json(const std::vector<Row>& rows, const Json& facts) {
  Json result = {{"facts", facts}, {"layers", Json::array()}};
  for (const Row& row : rows) {
    result["layers"].push_back({{"net", row.layer.net},
                                {"layer", row.layer.name},
                                {"count", row.layer.count},
                                {"algorithm", row.layer.algorithm},
                                {"us", row.timing.microseconds},
                                {"gflops", row.timing.gflops},
                                {"peak_gflops", row.timing.peak_gflops},
                                {"peak_fraction", row.timing.peak_fraction},
                                {"bytes", row.bytes},
                                {"bound", row.bound},
                                {"read_fraction", row.read_fraction}});
  }
  result["bars"] = Json::array();
  for (const Bar& bar : kernel_bars(rows)) {
    result["bars"].push_back(
        {{"what", bar.what}, {"figure", bar.figure}, {"limit", bar.limit}, {"passed", bar.passed()}});
  }
  return result;
}

/// Prints the bars; 1 when one is missed.
int check_bars(const std::vector<Row>& rows) {
  const std::vector<Bar> bars = kernel_bars(rows);
  if (!bars.empty()) std::printf("\n%s", bars_table(bars).c_str());
  return std::all_of(bars.begin(), bars.end(), [](const Bar& bar) { return bar.passed(); }) ? 0 : 1;
}

std::vector<Row> measure_all(const Options& options, const target::Target& target, double bandwidth) {
  parallel::ThreadPool pool(options.measure.threads);
  parallel::Lease lease = pool.lease(options.measure.threads);
  std::vector<std::pair<Layer, std::unique_ptr<LayerKernel>>> kernels;
  for (const Layer& layer : all_layers(target.facts.lanes(32), options.batch, options.tile)) {
    if (!options.net.empty() && layer.net != options.net) continue;
    if (layer.name.find(options.layer) == std::string::npos) continue;
    kernels.emplace_back(layer, std::make_unique<LayerKernel>(layer, target));
    if (options.cold) kernels.back().second->make_cold(kColdBytes);
    if (options.verify) kernels.back().second->verify();
    if (options.schedule)
      std::printf("# %s\n%s", layer.name.c_str(), kernels.back().second->schedule_text().c_str());
    if (options.assembly)
      std::printf("# %s\n%s", layer.name.c_str(), kernels.back().second->assembly_text().c_str());
  }
  std::vector<Row> rows;
  for (auto& [layer, kernel] : kernels) {
    Row row{layer, measure(*kernel, layer.flops, options.measure, lease), kernel->bytes(), "compute", 0};
    if (row.bytes / bandwidth > layer.flops / row.timing.peak_gflops) row.bound = "memory";
    if (layer.op == "matmul_packed" && layer.inputs[0][0] == 1 && options.measure.threads == 1)
      row.read_fraction = measure_read_fraction(*kernel, options.measure, lease);
    std::printf("%s\n", markdown_row(row).c_str());
    std::fflush(stdout);
    rows.push_back(std::move(row));
  }
  return rows;
}

int run(const Options& options) {
  const target::Target host = target::host_target();
  const target::Target target = target::parse_target(options.target, host);
  const double bandwidth = ReadProbe(kFarBytes).gbs(kProbeSeconds);
  const std::vector<Row> rows = measure_all(options, target, bandwidth);
  if (rows.empty()) throw Error(ErrorCode::kInvalidArgument, "no layer has this name");
  const Json facts = {
      {"target", target.canonical()}, {"threads", options.measure.threads},
      {"batch", options.batch},       {"probe_bits", fma_probe_bits()},
      {"read_gbs", bandwidth},        {"resnet50_mean_peak_fraction", mean_fraction(rows, "resnet50")}};
  std::ofstream(options.out + "/kernels.json") << to_json(rows, facts).dump(1) << "\n";
  std::ofstream(options.out + "/kernels.md") << markdown(rows, facts);
  return check_bars(rows);
}

}  // namespace

}  // namespace tensormill::bench

int main(int argc, char** argv) {
  try {
    return tensormill::bench::run(tensormill::bench::parse({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
