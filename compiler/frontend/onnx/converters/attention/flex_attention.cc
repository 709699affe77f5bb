// ai.onnx.preview: attention whose scores and weights the model's own subgraphs change.
#include "compiler/frontend/onnx/converters/attention/attend.h"
#include "compiler/frontend/onnx/converters/control/structure.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// The dtype of queries, keys and values, which are [B,heads,length,D].
DType checked_operands(const StructureContext& context) {
  const NodeContext& node = context.node;
  DType dtype = DType::kFloat32;
  for (size_t i = 0; i < 3; ++i) {
    const Binding& operand = context.input(i);
    if (operand.kind != Binding::Kind::kTensor) node.invalid("an operand is no tensor");
    const ir::ValueType& type = node.type(operand.tensor);
    if (i == 0) dtype = type.dtype;
    if (type.shape.size() != 4 || !is_float(type.dtype) || type.dtype != dtype)
      node.invalid("operand " + std::to_string(i) + " is " + ir::to_string(type));
  }
  return dtype;
}

/// What the subgraph makes of x, or x where there is none; nothing when a node in it could not be converted.
std::optional<V> changed(StructureContext& context, const char* attribute, V x) {
  if (!context.node.has_attr(attribute)) return x;
  const std::optional<std::vector<Binding>> results =
      context.builder.run_body(context.body(attribute), context.scope, {tensor(x)});
  if (!results) return std::nullopt;
  const bool is_tensor = results->size() == 1 && results->front().kind == Binding::Kind::kTensor;
  const std::string expected = ir::to_string(context.node.type(x));
  if (!is_tensor || ir::to_string(context.node.type(results->front().tensor)) != expected)
    context.node.invalid(std::string(attribute) + " gives no " + expected);
  return results->front().tensor;
}

}  // namespace

// prob_mod(softmax(score_mod(Q K^T * scale))) V
std::optional<std::vector<Binding>> convert_flex_attention(StructureContext& context) {
  NodeContext& node = context.node;
  Compose c(node);
  const DType dtype = checked_operands(context);
  if (node.has_attr("mask_mod")) node.unsupported("mask_mod", "masks are written as score_mod");
  const DType wide = attended_as(dtype);
  const DType precision = node.has_attr("softmax_precision") ? node.dtype_attr("softmax_precision") : wide;
  if (!is_float(precision)) node.invalid("softmax_precision is no float type");
  const V q = c.cast(node.input(0), wide);
  const auto for_queries = [&](size_t index) {
    return repeat_heads(node, c.cast(node.input(index), wide), c.shape(q)[1]);
  };
  const V products = scaled_products(node, q, for_queries(1), node.float_attr("scale", 0));
  const std::optional<V> scores = changed(context, "score_mod", c.cast(products, precision));
  if (!scores) return std::nullopt;
  const V softmax = node.add("softmax", {*scores}, {{"axis", int64_t{3}}});
  const std::optional<V> weights = changed(context, "prob_mod", softmax);
  if (!weights) return std::nullopt;
  const V result = c.matmul(c.cast(*weights, wide), for_queries(2));
  return std::vector<Binding>{tensor(c.cast(result, dtype))};
}

}  // namespace tensormill::frontend::onnx
