// Reductions, normalizations and what sorts.

#include "compiler/build/moves/moves.h"
#include "compiler/build/moves/places.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

const char* reduction_of(std::string_view op) {
  if (op == "MEAN") return "reduce_mean";
  if (op == "SUM") return "reduce_sum";
  if (op == "REDUCE_PROD") return "reduce_prod";
  if (op == "REDUCE_MIN" || op == "REDUCE_ALL") return "reduce_min";
  return "reduce_max";
}

/// Operand `index`, in order and once each.
ir::Ints axes_of(NodeContext& node, size_t index, int64_t rank) {
  return node.normalize_axes(node.known_ints(index, "axis"), rank);
}

}  // namespace

void convert_reduce(NodeContext& node) {
  const char* op = reduction_of(node.op());
  Compose c(node);
  V x = node.real(0);
  const DType dtype = c.dtype(x);
  const ir::Ints axes = axes_of(node, 1, node.rank(x));
  // The order of bools is that of numbers.
  if (dtype == DType::kBool) x = node.elementwise("cast", {x}, {{"to", DType::kUInt8}});
  const V result = build::reduced(node, node.maps(), op, x, axes, node.options<ReducerOptions>().keep_dims);
  node.set_real(0, dtype == DType::kBool ? node.elementwise("cast", {result}, {{"to", dtype}}) : result);
}

void convert_arg_reduce(NodeContext& node) {
  Compose c(node);
  const V x = node.stored(0);
  const int64_t axis = node.normalize_axis(node.known_int(1, "axis"), node.rank(x));
  const ir::Attrs attrs{{"axis", axis}, {"keepdims", int64_t{0}}, {"select_last", int64_t{0}}};
  const V place = node.add(node.op() == "ARG_MAX" ? "arg_max" : "arg_min", {x}, attrs);
  node.set_stored(0, c.cast(place, node.output_dtype(0)));
}

void convert_top_k(NodeContext& node) {
  Compose c(node);
  const V x = node.stored(0);
  const int64_t axis = node.rank(x) - 1;
  if (axis < 0) node.invalid("the input has no axis");
  const int64_t k = node.known_int(1, "k");
  const V order = build::ordered_places(node, x, axis, k, false);
  node.set_stored(0, c.gather_elements(x, order, axis));
  if (node.num_outputs() > 1) node.set_stored(1, c.cast(order, node.output_dtype(1)));
}

void convert_cumsum(NodeContext& node) {
  const auto options = node.options<CumsumOptions>();
  const V x = node.real(0);
  const int64_t axis = node.normalize_axis(node.known_int(1, "axis"), node.rank(x));
  node.set_real(0, node.add("cumsum", {x},
                            {{"axis", axis},
                             {"exclusive", int64_t{options.exclusive}},
                             {"reverse", int64_t{options.reverse}}}));
}

void convert_softmax(NodeContext& node) {
  const auto beta = static_cast<double>(node.options<SoftmaxOptions>().beta);
  V x = node.real(0);
  if (beta != 1) x = node.elementwise("mul", {x, node.scalar_like(x, beta)});
  node.set_real(0, build::along_channels(node, node.maps(), "softmax", x));
}

void convert_log_softmax(NodeContext& node) {
  node.set_real(0, build::along_channels(node, node.maps(), "log_softmax", node.real(0)));
}

void convert_l2_normalization(NodeContext& node) {
  constexpr double kEpsilon = 1e-6;
  const V x = node.real(0);
  const V sums = build::reduced(node, node.maps(), "reduce_sum", node.elementwise("mul", {x, x}),
                                {node.rank(x) - 1}, true);
  const V length = node.elementwise("max", {node.elementwise("sqrt", {sums}), node.scalar_like(x, kEpsilon)});
  node.set_real(0, node.elementwise("div", {x, length}),
                node.options<L2NormOptions>().fused_activation_function);
}

// alpha is a factor of the sum, in the graph of the mean.
void convert_local_response_normalization(NodeContext& node) {
  const auto options = node.options<LocalResponseNormalizationOptions>();
  if (options.radius < 0 || options.radius > (1 << 20))
    node.invalid("a radius of " + std::to_string(options.radius));
  const int64_t size = 2 * int64_t{options.radius} + 1;
  const V y = node.add("lrn", {node.real_first(0)},
                       {{"size", size},
                        {"alpha", static_cast<double>(options.alpha) * static_cast<double>(size)},
                        {"beta", static_cast<double>(options.beta)},
                        {"bias", static_cast<double>(options.bias)}});
  node.set_real(0, node.last(y));
}

}  // namespace tensormill::frontend::tflite
