#include "compiler/frontend/onnx/graph_form.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
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
    if (!value.constant) largest = std::max<int64_t>(largest, num_elements(value.type.shape));
  }
  return largest;
}

int64_t longest_hop_of(const ir::Graph& graph) {
  constexpr int64_t kLongest = int64_t{1} << 32;
  int64_t longest = 0;
  for (const ir::Node& node : graph.nodes()) {
    for (const char* name : {"strides", "dilations", "steps", "asked"}) {
      if (!node.attrs.has(name)) continue;
      const std::vector<int64_t>& hops = node.attrs.ints_of(name);
      // Of a slice's start, end and step the last one.
      const size_t every = std::string_view(name) == "asked" ? 3 : 1;
      for (size_t i = every - 1; i < hops.size(); i += every)
        longest = std::max(longest, std::abs(std::clamp(hops[i], -kLongest, kLongest)));
    }
  }
  return longest;
}

}  // namespace tensormill::frontend::onnx
