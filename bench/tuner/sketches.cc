#include "bench/tuner/sketches.h"

#include <chrono>

#include "compiler/driver/compile.h"
#include "compiler/ops/ops.h"
#include "compiler/tune/session.h"
#include "server/measure/worker.h"

namespace tensormill::bench {

namespace {

struct Operator {
  const char* name;
  const char* graph;
};

const Operator kOperators[] = {
    {"max_pool 3x3/2, 64x112x112", R"(graph "g" (%x: f32[1,64,112,112]) {
  %y: f32[1,64,56,56] = max_pool(%x) {kernel: ints[3, 3], pads: ints[1, 1, 1, 1], strides: ints[2, 2]}
  return %y
}
)"},
    {"avg_pool 3x3, 32x56x56", R"(graph "g" (%x: f32[1,32,56,56]) {
  %y: f32[1,32,56,56] = avg_pool(%x) {kernel: ints[3, 3], pads: ints[1, 1, 1, 1], strides: ints[1, 1]}
  return %y
}
)"},
    {"softmax, 384x384", R"(graph "g" (%x: f32[384,384]) {
  %y: f32[384,384] = softmax(%x) {axis: 1}
  return %y
}
)"},
    {"softmax over rows, 64x1000", R"(graph "g" (%x: f32[64,1000]) {
  %y: f32[64,1000] = softmax(%x) {axis: 0}
  return %y
}
)"},
    {"reduce_mean of pictures, 256x14x14", R"(graph "g" (%x: f32[1,256,14,14]) {
  %y: f32[1,256] = reduce_mean(%x) {axes: ints[2, 3], keepdims: 0}
  return %y
}
)"},
    {"reduce_max of rows, 128x4096", R"(graph "g" (%x: f32[128,4096]) {
  %y: f32[128] = reduce_max(%x) {axes: ints[1], keepdims: 0}
  return %y
}
)"},
    {"reduce_sum of columns, 512x512", R"(graph "g" (%x: f32[512,512]) {
  %y: f32[512] = reduce_sum(%x) {axes: ints[0], keepdims: 0}
  return %y
}
)"},
    {"transpose and add, 256x512", R"(graph "g" (%x: f32[256,512], %z: f32[512,256]) {
  %t: f32[512,256] = transpose(%x) {perm: ints[1, 0]}
  %y: f32[512,256] = add(%t, %z)
  return %y
}
)"},
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::vector<SketchResult> tune_sketches(const target::Target& target, const std::string& program,
                                        int64_t trials) {
  const std::unique_ptr<codegen::Backend> backend = codegen::make_llvm_backend();
  measure::WorkerMeasurer measurer({.program = program});
  tune::TuneOptions options;
  options.sketches = true;
  options.trials = trials;
  options.seed = 1;
  options.measure.min_repeat_ms = 4;
  options.cpu = target::host_target().cpu;
  options.codegen = driver::compiler_build();
  tune::TuneHooks hooks;
  hooks.clock = &now;
  hooks.record = [](const tune::Record&) {};
  std::vector<SketchResult> results;
  for (const Operator& each : kOperators) {
    const ir::Graph graph = ir::parse_graph(each.graph, ops::standard_ops());
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
