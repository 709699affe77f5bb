#include "compiler/frontend/onnx/converters/control/appends.h"

#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/body_symbols.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
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

/// Whether the node hands its operand on as it is, where that is of the type.
bool is_same(const NodeProto& node, DType dtype) {
  if (!node.domain.empty() || node.inputs.size() != 1 || node.outputs.size() != 1) return false;
  if (node.op_type == "Identity") return true;
  const AttributeProto* to = node.op_type == "Cast" ? node.find("to") : nullptr;
  return to != nullptr && to->type == AttributeType::kInt && dtype_of(static_cast<int32_t>(to->i)) == dtype;
}

/// The nodes of a body that append: those that hand the value on as it is, then the Concat.
using Append = std::vector<size_t>;

/// The Concat of `name`, of that type, and what is appended to it, which becomes `output`; empty where there
/// is more to it.
Append find_append(const GraphProto& body, std::string name, DType dtype, const std::string& output) {
  Append nodes;
  if (count_reads(body, output) != 1) return nodes;
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    const NodeProto& node = body.nodes[i];
    if (node.inputs.empty() || node.inputs[0] != name) continue;
    if (count_reads(body, name) != 1) return {};
    nodes.push_back(i);
    if (is_same(node, dtype)) {
      name = node.outputs[0];
      continue;
    }
    const bool appends = node.op_type == "Concat" && node.domain.empty() && node.inputs.size() > 1 &&
                         node.outputs.size() == 1 && node.outputs[0] == output;
    const AttributeProto* axis = node.find("axis");
    return appends && axis != nullptr && axis->type == AttributeType::kInt ? nodes : Append();
  }
  return {};
}

/// Takes the nodes out of the body, or the first operand of the Concat; the name of what is appended.
std::string part_of(GraphProto& body, const Append& append) {
  NodeProto& concat = body.nodes[append.back()];
  concat.inputs.erase(concat.inputs.begin());
  const bool is_one = concat.inputs.size() == 1;
  const std::string part = is_one ? concat.inputs[0] : concat.outputs[0];
  for (size_t k = append.size(); k-- > 0;) {
    if (k + 1 < append.size() || is_one)
      body.nodes.erase(body.nodes.begin() + static_cast<std::ptrdiff_t>(append[k]));
  }
  return part;
}

}  // namespace

std::optional<AppendedValues> find_appended(const StructureContext& context, const GraphProto& body,
                                            const std::vector<Binding>& initial) {
  const size_t carried = initial.size();
  constexpr size_t kFirstInput = 2, kFirstOutput = 1;  // behind the iteration and conditions
  if (body.inputs.size() < kFirstInput + carried || body.outputs.size() < kFirstOutput + carried)
    return std::nullopt;
  const auto append_of = [&](const GraphProto& graph, size_t i) -> Append {
    if (initial[i].kind != Binding::Kind::kTensor || initial[i].tensor == ir::kAbsent) return {};
    return find_append(graph, body.inputs[kFirstInput + i].name, context.node.type(initial[i].tensor).dtype,
                       body.outputs[kFirstOutput + i].name);
  };
  std::vector<size_t> chosen;  // told from the whole body: a part may be another value that is handed on
  for (size_t i = 0; i < carried; ++i) {
    if (!append_of(body, i).empty()) chosen.push_back(i);
  }
  if (chosen.empty()) return std::nullopt;
  AppendedValues found{{}, body};
  std::vector<ValueInfoProto> parts;
  for (size_t k = chosen.size(); k-- > 0;) {
    const size_t i = chosen[k];
    const Append append = append_of(found.body, i);
    found.values.insert(found.values.begin(), {i, found.body.nodes[append.back()].find("axis")->i});
    ValueInfoProto part;
    part.name = part_of(found.body, append);
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
  ir::Ints perm = c.count_to(rank + 1);
  std::rotate(perm.begin(), perm.begin() + 1, perm.begin() + along + 1);
  if (along > 0) parts = c.transpose(parts, perm);
  ir::SymShape shape = c.shape(parts);
  const auto at = shape.begin() + along;
  *at = node.product(at[0], at[1]);
  shape.erase(at + 1);
  return data_dependent_concat(node, {initial, data_dependent_reshape(node, parts, shape)}, along);
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
  for (size_t i = count; i-- > 0;)
    own.initial.erase(own.initial.begin() + static_cast<std::ptrdiff_t>(appended.values[i].carried));
  own.body = [&](const std::vector<Binding>& arguments) {
    const BodySymbols symbols(node);
    Bindings results = context.builder.run_body(appended.body, context.scope, arguments);
    for (size_t i = 0; results && i < count; ++i) {
      Binding& part = (*results)[results->size() - count + i];
      const Binding& initial = form.initial[appended.values[i].carried];
      check_part(node, part, initial);
      if (!form.binds_symbols) continue;
      const int64_t axis = node.normalize_axis(appended.values[i].axis, node.rank(part.tensor));
      part.tensor = symbols.with_extents_beside(part.tensor, initial.tensor, static_cast<size_t>(axis));
    }
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
