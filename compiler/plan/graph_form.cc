// What the samples' graphs have in common.
#include <algorithm>
#include <cstring>

#include "compiler/ir/op_def.h"
#include "compiler/ops/host_steps.h"
#include "compiler/plan/generic_plan.h"
#include "runtime/base/error.h"

namespace tensormill::plan {

namespace {

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.data() == b.data() || std::memcmp(a.data(), b.data(), a.num_bytes()) == 0);
}

void check_same_graph(const ir::Graph& graph, const ir::Graph& first) {
  const bool same = graph.nodes().size() == first.nodes().size() &&
                    graph.values().size() == first.values().size() && graph.inputs() == first.inputs() &&
                    graph.outputs() == first.outputs();
  for (size_t i = 0; i < std::min(graph.nodes().size(), first.nodes().size()); ++i) {
    const ir::Node& a = graph.nodes()[i];
    const ir::Node& b = first.nodes()[i];
    if (a.op != b.op || a.inputs != b.inputs || a.outputs != b.outputs)
      throw Error(ErrorCode::kNotSupported,
                  "the graph itself depends on the free dims, at node \"" + name_of(b) + "\"");
  }
  if (!same) throw Error(ErrorCode::kNotSupported, "the graph itself depends on the free dims");
}

}  // namespace

GraphForm form_of(const ir::Graph& graph, const std::vector<int64_t>& dims, const ir::Graph& first) {
  check_same_graph(graph, first);
  GraphForm form{dims, {}, {}, std::vector<Nests>(graph.nodes().size())};
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const ir::Value& value = graph.values()[i];
    const std::optional<Tensor>& other = first.values()[i].constant;
    form.shapes.push_back(value.type.shape);
    form.same_constants.push_back(value.constant && other && same_bytes(*value.constant, *other));
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::Node& node = graph.nodes()[i];
    std::vector<ir::ValueId> inputs;
    if (is_host_node(graph, node)) {
      if (ops::host_attributes(node.attrs) != ops::host_attributes(first.nodes()[i].attrs))
        throw Error(ErrorCode::kNotSupported,
                    "what node \"" + name_of(node) + "\" does depends on the free dims");
      continue;
    }
    if (!is_view_node(graph, node)) form.nests[i] = split_nests(kernel_of(graph, node, inputs).program);
  }
  return form;
}

}  // namespace tensormill::plan
