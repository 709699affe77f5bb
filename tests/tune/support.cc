#include "tests/tune/support.h"

#include "compiler/ops/ops.h"

namespace tensormill::tune_test {

target::Target host_target() {
  target::Target target = target::host_target();
  target.facts.num_cores = 1;
  return target;
}

std::vector<tune::Task> tasks_of(std::string_view graph) {
  return tune::extract_tasks(ir::parse_graph(graph, ops::standard_ops()), host_target(), 3);
}

std::vector<tune::Task> matmul_tasks() {
  return tasks_of(R"(graph "product" (%x: f32[24,40], %w: f32[40,48]) {
  %y: f32[24,48] = matmul(%x, %w)
  %z: f32[24,48] = relu(%y)
  return %z
}
)");
}

}  // namespace tensormill::tune_test
