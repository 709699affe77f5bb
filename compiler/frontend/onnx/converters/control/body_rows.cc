#include "compiler/frontend/onnx/converters/control/body_rows.h"

#include <algorithm>
#include <optional>

#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

namespace {

bool is_first_axis(const NodeProto& node) {
  const AttributeProto* axis = node.find("axis");
  return axis == nullptr || (axis->type == AttributeType::kInt && axis->i == 0);
}

/// The value outside of the body that the node takes a row of, by the number of the iteration.
std::optional<ir::ValueId> whole_of(const StructureContext& context, const GraphProto& body,
                                    const NodeProto& node) {
  const bool takes_row = node.op_type == "Gather" && node.domain.empty() && node.inputs.size() == 2 &&
                         node.outputs.size() == 1 && node.inputs[1] == body.inputs[0].name &&
                         is_first_axis(node);
  if (!takes_row) return std::nullopt;
  const std::string& name = node.inputs[0];
  const auto is_named = [&](const ValueInfoProto& input) { return input.name == name; };
  if (std::any_of(body.inputs.begin(), body.inputs.end(), is_named)) return std::nullopt;
  const Binding* found = context.scope.find(name);
  if (found == nullptr || found->kind != Binding::Kind::kTensor || found->tensor == ir::kAbsent)
    return std::nullopt;
  return found->tensor;
}

}  // namespace

BodyRows find_rows(const StructureContext& context, const GraphProto& body, const ir::SymInt& trips) {
  BodyRows rows{{}, body};
  rows.body.nodes.clear();
  for (const NodeProto& node : body.nodes) {
    const std::optional<ir::ValueId> whole = whole_of(context, body, node);
    const bool is_each =
        whole && context.node.type(*whole).dtype != kString && !context.node.type(*whole).shape.empty() &&
        same(context.node.type(*whole).shape[0], trips) && context.node.data_shape(*whole).extents.empty();
    if (!is_each) {
      rows.body.nodes.push_back(node);
      continue;
    }
    rows.wholes.push_back(*whole);
    ValueInfoProto row;
    row.name = node.outputs[0];
    rows.body.inputs.push_back(row);
  }
  return rows;
}

}  // namespace tensormill::frontend::onnx
