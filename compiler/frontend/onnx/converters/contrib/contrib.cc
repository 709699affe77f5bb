// com.microsoft's operators that exporters and optimizers write beside those of fused.cc.
#include "compiler/build/compose.h"
#include "compiler/build/maps/channels.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

using V = ir::ValueId;

// The standard operator of that name, which came later or has other opsets.
void convert_as_standard(NodeContext& context) {
  std::vector<V> operands;
  for (size_t i = 0; i < context.num_inputs(); ++i) operands.push_back(context.optional_input(i));
  const std::vector<V> results = context.results_as("", context.node().op_type, operands);
  for (size_t i = 0; i < results.size(); ++i) context.set_output(i, results[i]);
}

// An axis of extent 1 at the place that operand 1 says.
void convert_expand_dims(NodeContext& context) {
  const V x = context.input(0);
  const int64_t axis = context.known_scalar(1, "axis").element_as_int(0);
  context.set_output(0, Compose(context).unsqueeze(x, context.normalize_axis(axis, context.rank(x) + 1)));
}

// The distance of each row of A [M,K] from each of B [N,K].
void convert_cdist(NodeContext& context) {
  Compose c(context);
  const V a = context.input(0), b = context.input(1);
  const std::string metric = context.string_attr("metric", "sqeuclidean");
  if (context.rank(a) != 2 || context.rank(b) != 2 || c.shape(a)[1] != c.shape(b)[1])
    context.invalid("the operands have shapes " + to_string(c.shape(a)) + " and " + to_string(c.shape(b)));
  const V apart = c.sub(c.unsqueeze(a, 1), c.unsqueeze(b, 0));
  const V square = c.reduce("reduce_sum", c.mul(apart, apart), {2}, false);
  context.set_output(0, metric == "euclidean" ? c.unary("sqrt", square) : square);
}

// Maximum of quantized pictures whose channels stand last.
void convert_nhwc_max_pool(NodeContext& context) {
  context.set_output(0, with_channels_first(context, context.input(0), [&](V x) {
                       return context.results_as("", "MaxPool", {x}).at(0);
                     }));
}

// X [N,S,C] + bias [C] + skip
void convert_bias_add(NodeContext& context) {
  Compose c(context);
  context.set_output(0, c.add(c.add(context.input(0), context.input(1)), context.input(2)));
}

// Of x + bias [N,S,2*D]: the left half times the right half's Gelu.
void convert_bias_split_gelu(NodeContext& context) {
  Compose c(context);
  const V sum = c.add(context.input(0), context.input(1));
  const ir::SymInt axis = context.rank(sum) - 1, width = c.shape(sum).back() / 2;
  if (c.shape(sum).back() != 2 * width) context.invalid("has an odd number of columns");
  const V right = context.add("gelu", {c.slice(sum, axis, width, width)}, {{"approximate", "none"}});
  context.set_output(0, c.mul(c.slice(sum, axis, 0, width), right));
}

namespace {

/// Groups of the channels of x [N,H,W,C], or [N,C,H,W] where attribute channels_last says so, normalized in
/// float32, times operand 1 plus operand 2; SiLU where attribute activation is 1.
V group_normalized(NodeContext& context, V x) {
  Compose c(context);
  const ir::SymShape shape = c.shape(x);
  const int64_t groups = context.required_int("groups"), activation = context.required_int("activation");
  const bool is_last = context.int_attr("channels_last", 1) != 0;
  const ir::SymInt channels = shape.size() == 4 ? shape[is_last ? 3 : 1] : ir::SymInt(0);
  if (groups < 1 || channels % groups != 0 || shape.size() != 4)
    context.invalid("shape " + to_string(shape) + " does not divide into " + std::to_string(groups) +
                    " groups");
  const ir::SymShape split = is_last ? ir::SymShape{shape[0], shape[1], shape[2], groups, channels / groups}
                                     : ir::SymShape{shape[0], groups, channels / groups, shape[2], shape[3]};
  const std::vector<int64_t> axes = is_last ? std::vector<int64_t>{1, 2, 4} : std::vector<int64_t>{2, 3, 4};
  const V rows = c.cast(c.reshape(x, split), DType::kFloat32);
  const V centered = c.sub(rows, c.reduce("reduce_mean", rows, axes, true));
  const V variance = c.reduce("reduce_mean", c.mul(centered, centered), axes, true);
  const V deviation = c.unary("sqrt", c.plus(variance, context.float_attr("epsilon", 1e-5)));
  const ir::SymShape along = is_last ? ir::SymShape{channels} : ir::SymShape{channels, 1, 1};
  const V scaled = c.mul(c.reshape(c.div(centered, deviation), shape), c.reshape(context.input(1), along));
  V result = c.add(scaled, c.reshape(context.input(2), along));
  if (activation == 1) result = c.mul(result, c.unary("sigmoid", result));
  return c.cast(result, c.dtype(x));
}

}  // namespace

void convert_contrib_group_norm(NodeContext& context) {
  context.set_output(0, group_normalized(context, context.input(0)));
}

// Of x + skip + bias, which is output 1; skip has the shape of x, or one value for each picture's channel.
void convert_skip_group_norm(NodeContext& context) {
  Compose c(context);
  V skip = context.input(3);
  if (context.rank(skip) == 2) skip = c.unsqueeze(c.unsqueeze(skip, 1), 1);
  V sum = c.add(context.input(0), skip);
  if (context.has_input(4)) sum = c.add(sum, context.input(4));
  context.set_output(0, group_normalized(context, sum));
  context.set_output(1, sum);
}

}  // namespace tensormill::frontend::onnx
