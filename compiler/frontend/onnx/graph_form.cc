#include "compiler/frontend/onnx/graph_form.h"

#include <algorithm>
#include <variant>

namespace tensormill::frontend::onnx {

GraphForm form_of(const ir::Graph& graph) {
  GraphForm form;
  const auto add = [&](const std::vector<int64_t>& values) {
    form.values.insert(form.values.end(), values.begin(), values.end());
  };
  for (const ir::Value& value : graph.values()) {
    add(value.type.shape);
    if (value.constant) form.constant_bytes += value.constant->num_bytes();
  }
  form.extents = form.values.size();
  for (const ir::Node& node : graph.nodes()) {
    for (const auto& [name, attr] : node.attrs.all()) {
      if (const auto* one = std::get_if<int64_t>(&attr)) add({*one});
      const auto* many = std::get_if<std::vector<int64_t>>(&attr);
      if (many == nullptr) continue;
      const bool are_starts = node.op == "slice" && name == "starts";
      for (size_t i = 0; i < many->size() && are_starts; ++i) form.starts.push_back(form.values.size() + i);
      add(*many);
    }
  }
  return form;
}

int64_t largest_of(const ir::Graph& graph) {
  int64_t largest = 0;
  for (const ir::Value& value : graph.values()) {
    if (!value.constant) largest = std::max(largest, num_elements(value.type.shape));
  }
  return largest;
}

}  // namespace tensormill::frontend::onnx
