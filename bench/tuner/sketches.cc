#include "bench/tuner/sketches.h"

#include "compiler/driver/compile.h"
#include "compiler/ops/ops.h"
#include "compiler/tune/session.h"
#include "server/measure/worker.h"

namespace tensormill::bench {

namespace {

struct Operator {
  const char* name;
  const char* inputs;
  const char* body;  ///< nodes; the last one is %y
};

// As networks have them, large and small; bench/README.md says which.
const Operator kOperators[] = {
    {"max_pool 3x3/2, 64x112x112", "%x: f32[1,64,112,112]",
     "  %y: f32[1,64,56,56] = max_pool(%x) {kernel: ints[3, 3], pads: ints[1, 1, 1, 1], strides: ints[2, "
     "2]}\n"},
    {"max_pool 3x3/2, 256x13x13", "%x: f32[1,256,13,13]",
     "  %y: f32[1,256,6,6] = max_pool(%x) {kernel: ints[3, 3], strides: ints[2, 2]}\n"},
    {"avg_pool 3x3, 192x35x35", "%x: f32[1,192,35,35]",
     "  %y: f32[1,192,35,35] = avg_pool(%x) {kernel: ints[3, 3], pads: ints[1, 1, 1, 1], strides: ints[1, "
     "1]}\n"},
    {"avg_pool 2x2/2, 128x28x28", "%x: f32[1,128,28,28]",
     "  %y: f32[1,128,14,14] = avg_pool(%x) {kernel: ints[2, 2], strides: ints[2, 2]}\n"},
    {"softmax of rows, 1536x128", "%x: f32[1536,128]", "  %y: f32[1536,128] = softmax(%x) {axis: 1}\n"},
    {"softmax of rows, 16x1000", "%x: f32[16,1000]", "  %y: f32[16,1000] = softmax(%x) {axis: 1}\n"},
    {"softmax of channels, 21x65x65", "%x: f32[1,21,65,65]",
     "  %y: f32[1,21,65,65] = softmax(%x) {axis: 1}\n"},
    {"log_softmax of rows, 128x2000", "%x: f32[128,2000]",
     "  %y: f32[128,2000] = log_softmax(%x) {axis: 1}\n"},
    {"reduce_mean of images, 256x14x14", "%x: f32[1,256,14,14]",
     "  %y: f32[1,256] = reduce_mean(%x) {axes: ints[2, 3], keepdims: 0}\n"},
    {"reduce_mean of images, 2048x7x7", "%x: f32[1,2048,7,7]",
     "  %y: f32[1,2048] = reduce_mean(%x) {axes: ints[2, 3], keepdims: 0}\n"},
    {"reduce_max of rows, 128x4096", "%x: f32[128,4096]",
     "  %y: f32[128] = reduce_max(%x) {axes: ints[1], keepdims: 0}\n"},
    {"reduce_sum of columns, 512x512", "%x: f32[512,512]",
     "  %y: f32[512] = reduce_sum(%x) {axes: ints[0], keepdims: 0}\n"},
    {"arg_max of channels, 21x65x65", "%x: f32[1,21,65,65]",
     "  %y: i64[1,65,65] = arg_max(%x) {axis: 1, keepdims: 0}\n"},
    {"rows divided by their length, 64x512", "%x: f32[64,512]",
     "  %l: f32[64,1] = reduce_l2(%x) {axes: ints[1], keepdims: 1}\n"
     "  %y: f32[64,512] = div(%x, %l)\n"},
    {"instance_norm, 32x64x64", "%x: f32[1,32,64,64], %s: f32[32], %b: f32[32]",
     "  %y: f32[1,32,64,64] = instance_norm(%x, %s, %b)\n"},
    {"layer norm of channels, 96x56x56", "%x: f32[1,96,56,56]",
     "  %m: f32[1,1,56,56] = reduce_mean(%x) {axes: ints[1], keepdims: 1}\n"
     "  %d: f32[1,96,56,56] = sub(%x, %m)\n"
     "  %q: f32[1,96,56,56] = mul(%d, %d)\n"
     "  %v: f32[1,1,56,56] = reduce_mean(%q) {axes: ints[1], keepdims: 1}\n"
     "  %s: f32[1,1,56,56] = sqrt(%v)\n"
     "  %y: f32[1,96,56,56] = div(%d, %s)\n"},
    {"gate and pool, 96x28x28", "%x: f32[1,96,28,28], %g: f32[1,96,1,1]",
     "  %s: f32[1,96,1,1] = sigmoid(%g)\n"
     "  %m: f32[1,96,28,28] = mul(%x, %s)\n"
     "  %y: f32[1,96] = reduce_mean(%m) {axes: ints[2, 3], keepdims: 0}\n"},
    {"transpose and add, 256x512", "%x: f32[256,512], %z: f32[512,256]",
     "  %t: f32[512,256] = transpose(%x) {perm: ints[1, 0]}\n"
     "  %y: f32[512,256] = add(%t, %z)\n"},
};

std::string graph_of(const Operator& each) {
  return std::string("graph \"g\" (") + each.inputs + ") {\n" + each.body + "  return %y\n}\n";
}

}  // namespace

std::vector<SketchResult> tune_sketches(const target::Target& target, const std::string& program,
                                        int64_t trials, const std::string& part) {
  const std::unique_ptr<codegen::Backend> backend = codegen::make_llvm_backend();
  measure::WorkerMeasurer measurer({.program = program});
  tune::TuneOptions options;
  options.sketches = true;
  options.trials = trials;
  options.seed = 1;
  options.measure.min_repeat_ms = 4;
  options.cpu = target::host_target().cpu;
  options.codegen = driver::code_generator();
  tune::TuneHooks hooks;
  hooks.clock = &now;
  hooks.record = [](const tune::Record&) {};
  std::vector<SketchResult> results;
  for (const Operator& each : kOperators) {
    if (std::string_view(each.name).find(part) == std::string_view::npos) continue;
    const ir::Graph graph = ir::parse_graph(graph_of(each), ops::standard_ops());
    tune::TuneSession session(tune::extract_tasks(graph, target, 3), target, options, *backend, measurer,
                              hooks);
    session.run();
    SketchResult result;
    result.name = each.name;
    result.default_seconds = session.default_latency();
    result.best_seconds = session.best_latency();
    result.trials = session.trials();
    for (const tune::TaskState& state : session.tasks()) {
      for (const auto& [cause, count] : state.failures) result.failed += count;
    }
    results.push_back(result);
  }
  return results;
}

double mean_gain(const std::vector<SketchResult>& results) {
  double sum = 0;
  for (const SketchResult& result : results) sum += result.default_seconds / result.best_seconds;
  return results.empty() ? 0 : sum / static_cast<double>(results.size());
}

}  // namespace tensormill::bench
