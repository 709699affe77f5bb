#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"

namespace tensormill::frontend::onnx {

std::optional<UnsupportedForm> check_batch_norm(const NodeProto& node, int64_t opset) {
  const AttributeProto* is_test = node.find("is_test");
  if (opset < 7 && (is_test == nullptr || is_test->i == 0))
    return UnsupportedForm{"is_test", "training is not implemented"};
  const AttributeProto* training = node.find("training_mode");
  const bool trains = opset >= 14 && training != nullptr && training->i != 0;
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty() && !trains)
      return UnsupportedForm{"output " + std::to_string(i), "training is not implemented"};
  }
  return std::nullopt;
}

namespace {

/// In training mode the data's own mean and variance normalize; the running ones are outputs 1 and 2.
void use_batch_statistics(NodeContext& context, std::vector<ir::ValueId>& inputs) {
  Compose c(context);
  const ir::SymShape shape = c.shape(inputs[0]);
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis != 1) axes.push_back(static_cast<int64_t>(axis));
  }
  const ir::ValueId mean = c.reduce("reduce_mean", inputs[0], axes, true);
  const ir::ValueId centered = c.sub(inputs[0], mean);
  const ir::ValueId variance = c.reduce("reduce_mean", c.mul(centered, centered), axes, false);
  const double momentum = context.float_attr("momentum", 0.9);
  const ir::ValueId flat = c.reshape(mean, c.shape(variance));
  context.set_output(1, c.add(c.times(inputs[3], momentum), c.times(flat, 1 - momentum)));
  context.set_output(2, c.add(c.times(inputs[4], momentum), c.times(variance, 1 - momentum)));
  inputs[3] = flat;
  inputs[4] = variance;
}

/// Before opset 9 each element of [C,spatial...] could have statistics of its own.
ir::ValueId normalized_by_element(NodeContext& context, const std::vector<ir::ValueId>& inputs,
                                  double epsilon) {
  Compose c(context);
  const ir::SymShape shape = c.shape(inputs[0]), own = c.shape(inputs[3]);
  if (shape.empty() || own != ir::SymShape(shape.begin() + 1, shape.end()))
    context.invalid("statistics of shape " + to_string(own) + " for data of " + to_string(shape));
  const ir::ValueId deviation = c.unary("sqrt", c.plus(inputs[4], epsilon));
  return c.add(c.mul(c.div(c.sub(inputs[0], inputs[3]), deviation), inputs[1]), inputs[2]);
}

}  // namespace

void convert_batch_norm(NodeContext& context) {
  std::vector<ir::ValueId> inputs;
  for (size_t i = 0; i < 5; ++i) inputs.push_back(context.input(i));
  context.require_bound_extents(inputs[0], 1);
  // Statistics may have another float type than the data (opset 15).
  const DType dtype = context.type(inputs[0]).dtype;
  for (size_t i = 1; i < 5; ++i) {
    if (context.type(inputs[i]).dtype != dtype) inputs[i] = context.add("cast", {inputs[i]}, {{"to", dtype}});
  }
  if (context.int_attr("training_mode", 0) != 0) use_batch_statistics(context, inputs);
  const double epsilon = context.float_attr("epsilon", 1e-5);
  const bool is_spatial = context.opset() >= 9 || context.int_attr("spatial", 1) != 0;
  context.set_output(0, is_spatial ? context.add("batch_norm", std::move(inputs), {{"epsilon", epsilon}})
                                   : normalized_by_element(context, inputs, epsilon));
}

void convert_instance_norm(NodeContext& context) {
  const double epsilon = context.float_attr("epsilon", 1e-5);
  const ir::ValueId scale = context.input(1), x = context.input(0);
  context.require_bound_extents(x, 1);
  context.set_output(0, context.add("instance_norm", {x, scale, context.input(2)}, {{"epsilon", epsilon}}));
}

// Two passes over the normalized axes: mean, then the mean of squared differences.
void convert_layer_norm(NodeContext& context) {
  const int64_t rank = context.rank(context.input(0));
  const int64_t first = context.normalize_axis(context.int_attr("axis", -1), rank);
  const ir::ValueId x = context.input(0);
  context.require_bound_extents(x, first);
  std::vector<int64_t> axes;
  for (int64_t axis = first; axis < rank; ++axis) axes.push_back(axis);
  const LayerNorm norm = layer_normalized(context, x, context.input(1), context.optional_input(2), axes,
                                          context.float_attr("epsilon", 1e-5));
  context.set_output(0, norm.result);
  context.set_output(1, norm.mean);
  context.set_output(2, norm.inverse);
}

LayerNorm layer_normalized(NodeContext& context, ir::ValueId x, ir::ValueId scale, ir::ValueId bias,
                           const std::vector<int64_t>& axes, double epsilon) {
  Compose c(context);
  const DType dtype = c.dtype(x), stash = DType::kFloat32;
  const DType wide = dtype == DType::kFloat64 ? dtype : stash;
  const ir::ValueId widened = c.cast(x, wide);
  const ir::ValueId mean = c.reduce("reduce_mean", widened, axes, true);
  const ir::ValueId centered = c.sub(widened, mean);
  const ir::ValueId variance = c.reduce("reduce_mean", c.mul(centered, centered), axes, true);
  const ir::ValueId inverse = c.unary("reciprocal", c.unary("sqrt", c.plus(variance, epsilon)));
  ir::ValueId result = c.mul(c.mul(centered, inverse), c.cast(scale, wide));
  if (bias != ir::kAbsent) result = c.add(result, c.cast(bias, wide));
  return {c.cast(result, dtype), c.cast(mean, stash), c.cast(inverse, stash)};
}

void convert_softmax(NodeContext& context) {
  const int64_t axis = context.normalize_axis(context.int_attr("axis", -1), context.rank(context.input(0)));
  const std::string op = context.node().op_type == "Softmax" ? "softmax" : "log_softmax";
  context.set_output(0, with_count(context, context.input(0), axis, "lowest", [&](ir::ValueId all) {
                       return context.add(op, {all}, {{"axis", axis}});
                     }));
}

// Before opset 13: the input is seen as a matrix, [product of dims before axis, product of the others].
void convert_softmax_flat(NodeContext& context) {
  const ir::SymShape shape = context.type(context.input(0)).shape;
  const ir::SymInt rank = static_cast<int64_t>(shape.size());
  const int64_t given = context.int_attr("axis", 1);
  const int64_t axis = given == rank ? int64_t{rank} : context.normalize_axis(given, rank);
  ir::SymShape matrix{1, 1};
  for (int64_t i = 0; i < rank; ++i) {
    ir::SymInt& extent = matrix[i < axis ? 0 : 1];
    extent = context.product(extent, shape[static_cast<size_t>(i)]);
  }
  const std::string op = context.node().op_type == "Softmax" ? "softmax" : "log_softmax";
  const ir::ValueId flat = context.reshape(context.input(0), matrix);
  const ir::ValueId shares = with_count(context, flat, 1, "lowest", [&](ir::ValueId all) {
    return context.add(op, {all}, {{"axis", int64_t{1}}});
  });
  context.set_output(0, context.reshape(shares, shape));
}

}  // namespace tensormill::frontend::onnx
