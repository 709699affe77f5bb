#include "tests/tune/support.h"

#include "compiler/ops/ops.h"

namespace tensormill::tune_test {

target::Target host_target() {
  target::Target target = target::host_target();
  target.facts.num_cores = 1;
  return target;
}

target::Target target_of_lanes(int lanes) {
  const std::string cpu = lanes == 16 ? "x86-64-v4" : lanes == 8 ? "x86-64-v3" : "x86-64";
  return target::parse_target("llvm -mcpu=" + cpu + " -mtriple=x86_64-linux-gnu -num-cores=1", {});
}

std::vector<tune::Task> tasks_of(std::string_view graph, const target::Target& target) {
  return tune::extract_tasks(ir::parse_graph(graph, ops::standard_ops()), target, 3);
}

std::vector<tune::Task> matmul_tasks(const target::Target& target) {
  return tasks_of(R"(graph "product" (%x: f32[24,40], %w: f32[40,48]) {
  %y: f32[24,48] = matmul(%x, %w)
  %z: f32[24,48] = relu(%y)
  return %z
}
)",
                  target);
}

}  // namespace tensormill::tune_test
