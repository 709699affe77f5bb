#include "compiler/frontend/onnx/converters/control/appends.h"

#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"
#include "compiler/frontend/onnx/extents/counted.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

namespace {

using Bindings = std::optional<std::vector<Binding>>;

/// How often the name is read in the graph and in those inside of it, as one of their outputs too.
size_t count_reads(const GraphProto& graph, const std::string& name) {
  size_t reads = 0;
  for (const NodeProto& node : graph.nodes) {
    reads += static_cast<size_t>(std::count(node.inputs.begin(), node.inputs.end(), name));
    for (const AttributeProto& attribute : node.attributes) {
      for (const auto& inner : attribute.graphs) reads += count_reads(*inner, name);
    }
  }
  return reads + static_cast<size_t>(
                     std::count_if(graph.outputs.begin(), graph.outputs.end(),
                                   [&](const ValueInfoProto& output) { return output.name == name; }));
}

constexpr size_t kNone = static_cast<size_t>(-1);

/// The Concat of `name` and what is appended to it, which becomes `output`; kNone where there is more to it.
size_t find_append(const GraphProto& body, const std::string& name, const std::string& output) {
  if (count_reads(body, name) != 1 || count_reads(body, output) != 1) return kNone;
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    const NodeProto& node = body.nodes[i];
    const bool appends = node.op_type == "Concat" && node.domain.empty() && node.inputs.size() > 1 &&
                         node.inputs[0] == name && node.outputs.size() == 1 && node.outputs[0] == output;
    const AttributeProto* axis = node.find("axis");
    if (appends && axis != nullptr && axis->type == AttributeType::kInt) return i;
  }
  return kNone;
}

/// Takes the Concat at `at` out of the body, or the first operand of it; the name of what is appended.
std::string part_of(GraphProto& body, size_t at) {
  NodeProto& node = body.nodes[at];
  node.inputs.erase(node.inputs.begin());
  if (node.inputs.size() > 1) return node.outputs[0];
  const std::string part = node.inputs[0];
  body.nodes.erase(body.nodes.begin() + static_cast<std::ptrdiff_t>(at));
  return part;
}

}  // namespace

std::optional<AppendedValues> find_appended(const GraphProto& body, size_t carried) {
  constexpr size_t kFirstInput = 2, kFirstOutput = 1;  // behind the iteration and conditions
  if (body.inputs.size() < kFirstInput + carried || body.outputs.size() < kFirstOutput + carried)
    return std::nullopt;
  const auto append_of = [&](const GraphProto& graph, size_t i) {
    return find_append(graph, body.inputs[kFirstInput + i].name, body.outputs[kFirstOutput + i].name);
  };
  std::vector<size_t> chosen;  // told from the whole body: a part may be another value that is handed on
  for (size_t i = 0; i < carried; ++i) {
    if (append_of(body, i) != kNone) chosen.push_back(i);
  }
  if (chosen.empty()) return std::nullopt;
  AppendedValues found{{}, body};
  std::vector<ValueInfoProto> parts;
  for (size_t k = chosen.size(); k-- > 0;) {
    const size_t i = chosen[k], at = append_of(found.body, i);
    found.values.insert(found.values.begin(), {i, found.body.nodes[at].find("axis")->i});
    ValueInfoProto part;
    part.name = part_of(found.body, at);
    parts.insert(parts.begin(), part);
    found.body.inputs.erase(found.body.inputs.begin() + static_cast<std::ptrdiff_t>(kFirstInput + i));
    found.body.outputs.erase(found.body.outputs.begin() + static_cast<std::ptrdiff_t>(kFirstOutput + i));
  }
  found.body.outputs.insert(found.body.outputs.end(), parts.begin(), parts.end());
  return found;
}

namespace {

/// Parts [trips,...] behind `initial` along an axis of a part.
ir::ValueId joined(NodeContext& node, ir::ValueId initial, ir::ValueId parts, int64_t axis) {
  Compose c(node);
  const int64_t rank = node.rank(parts) - 1, along = node.normalize_axis(axis, rank);
  std::vector<int64_t> perm = c.count_to(rank + 1);
  std::rotate(perm.begin(), perm.begin() + 1, perm.begin() + along + 1);
  if (along > 0) parts = c.transpose(parts, perm);
  ir::SymShape shape = c.shape(parts);
  const auto at = shape.begin() + along;
  *at = node.product(at[0], at[1]);
  shape.erase(at + 1);
  return counted_concat(node, {initial, counted_reshape(node, parts, shape)}, along);
}

/// Whether all runs append as much in each iteration.
void check_part(NodeContext& node, const Binding& part, const Binding& initial) {
  const bool is_tensor = part.kind == Binding::Kind::kTensor && part.tensor != ir::kAbsent;
  const bool is_plain = is_tensor && node.type(part.tensor).dtype != kString && node.rank(part.tensor) > 0 &&
                        node.type(part.tensor).dtype == node.type(initial.tensor).dtype &&
                        node.rank(part.tensor) == node.rank(initial.tensor);
  const DataShape shape = is_plain ? node.data_shape(part.tensor) : DataShape();
  if (!is_plain || !shape.is_known || !shape.extents.empty())
    node.unsupported("body", "what it appends is not of one shape");
}

}  // namespace

Bindings convert_appending_loop(StructureContext& context, const LoopForm& form,
                                const AppendedValues& appended) {
  NodeContext& node = context.node;
  const size_t count = appended.values.size();
  LoopForm own = form;
  for (size_t i = count; i-- > 0;) {
    const size_t carried = appended.values[i].carried;
    if (form.initial[carried].kind != Binding::Kind::kTensor || form.initial[carried].tensor == ir::kAbsent)
      return std::nullopt;
    own.initial.erase(own.initial.begin() + static_cast<std::ptrdiff_t>(carried));
  }
  own.body = [&](const std::vector<Binding>& arguments) {
    Bindings results = context.builder.run_body(appended.body, context.scope, arguments);
    for (size_t i = 0; results && i < count; ++i)
      check_part(node, (*results)[results->size() - count + i], form.initial[appended.values[i].carried]);
    return results;
  };
  Bindings results = convert_as_loop(context, own);
  if (!results) return std::nullopt;
  const std::vector<Binding> parts(results->end() - static_cast<std::ptrdiff_t>(count), results->end());
  results->resize(results->size() - count);
  for (size_t i = 0; i < count; ++i) {
    const size_t carried = appended.values[i].carried;
    const ir::ValueId whole =
        joined(node, form.initial[carried].tensor, parts[i].tensor, appended.values[i].axis);
    results->insert(results->begin() + static_cast<std::ptrdiff_t>(carried), tensor(whole));
  }
  return results;
}

}  // namespace tensormill::frontend::onnx
