#include <algorithm>
#include <numeric>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/counted.h"

namespace tensormill::frontend::onnx {

namespace {

const char* reduce_op(const std::string& op) {
  if (op == "ReduceSum") return "reduce_sum";
  if (op == "ReduceMean") return "reduce_mean";
  if (op == "ReduceMax") return "reduce_max";
  if (op == "ReduceMin") return "reduce_min";
  if (op == "ReduceProd") return "reduce_prod";
  if (op == "ReduceL1") return "reduce_l1";
  if (op == "ReduceL2") return "reduce_l2";
  if (op == "ReduceSumSquare") return "reduce_sum_square";
  if (op == "ReduceLogSum") return "reduce_log_sum";
  return "reduce_log_sum_exp";
}

/// The type in which a reduction is computed: roots and logarithms of integers in double, the order of bools
/// as numbers.
DType reduction_dtype(const std::string& op, DType dtype) {
  if (dtype == DType::kBool && (op == "reduce_max" || op == "reduce_min")) return DType::kUInt8;
  const bool is_real = op == "reduce_l2" || op == "reduce_log_sum" || op == "reduce_log_sum_exp";
  return is_real && is_integer(dtype) ? DType::kFloat64 : dtype;
}

/// What an operator makes of each element alone: the sum of one square is that square.
ir::ValueId reduced_over_no_axes(NodeContext& context, ir::ValueId x) {
  const std::string op = reduce_op(context.node().op_type);
  if (op == "reduce_l1" || op == "reduce_l2") return context.add("abs", {x});
  if (op == "reduce_sum_square") return context.add("mul", {x, x});
  if (op != "reduce_log_sum") return context.add("identity", {x});
  const DType dtype = context.type(x).dtype, wide = reduction_dtype(op, dtype);
  if (wide == dtype) return context.add("log", {x});
  const ir::ValueId value = context.add("log", {context.add("cast", {x}, {{"to", wide}})});
  return context.add("cast", {value}, {{"to", dtype}});
}

/// What changes nothing in a reduction.
const char* neutral_element(const std::string& op) {
  if (op == "reduce_max" || op == "reduce_log_sum_exp") return "lowest";
  if (op == "reduce_min") return "largest";
  return op == "reduce_prod" ? "one" : "zero";
}

/// The mean over axes of which some, `counts`, are as long as data says.
ir::ValueId mean_of_counted(NodeContext& context, ir::ValueId filled, const DataShape& counts,
                            const ir::Attrs& attrs) {
  const ir::ValueType type = context.type(filled);
  int64_t others = 1;
  std::vector<ir::ValueId> factors;
  for (const int64_t axis : attrs.ints_of("axes")) {
    const DataExtent* counted = counts.along(axis);
    if (counted == nullptr) {
      others = context.product(others, type.shape[static_cast<size_t>(axis)]);
    } else {
      factors.push_back(counted->count);
    }
  }
  ir::ValueId count = context.int64_constant({others});
  for (const ir::ValueId factor : factors) count = context.add("mul", {factor, count});
  if (type.dtype != DType::kInt64) count = context.add("cast", {count}, {{"to", type.dtype}});
  return context.add("div", {context.add("reduce_sum", {filled}, attrs), context.reshape(count, {})});
}

}  // namespace

ir::ValueId reduced(NodeContext& context, const std::string& op, ir::ValueId x, const ir::Attrs& attrs) {
  const DataShape shape = context.data_shape(x);
  ir::ValueId filled = x;
  for (const int64_t axis : attrs.ints_of("axes"))
    filled = filled_along(context, filled, axis, neutral_element(op));
  return op == "reduce_mean" && filled != x ? mean_of_counted(context, filled, shape, attrs)
                                            : context.add(op, {filled}, attrs);
}

// Axes are an attribute, and an operand from opset 13 (ReduceSum) or 18 (the others) on.
void convert_reduce(NodeContext& context) {
  const int64_t rank = context.rank(context.input(0));
  std::vector<int64_t> axes =
      context.has_input(1) ? context.known_ints(1, "axes") : context.ints_attr("axes", {});
  if (axes.empty() && context.int_attr("noop_with_empty_axes", 0) != 0) {
    context.set_output(0, reduced_over_no_axes(context, context.input(0)));
    return;
  }
  for (int64_t& axis : axes) axis = context.normalize_axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  const ir::Attrs attrs{{"axes", axes}, {"keepdims", int64_t{context.int_attr("keepdims", 1) != 0}}};
  const std::string op = reduce_op(context.node().op_type);
  const ir::ValueId x = context.input(0);
  const DType dtype = context.type(x).dtype;
  const DType wide = reduction_dtype(op, dtype);
  const auto cast = [&](ir::ValueId value, DType to) {
    return wide == dtype ? value : context.add("cast", {value}, {{"to", to}});
  };
  context.set_output(0, cast(reduced(context, op, cast(x, wide), attrs), dtype));
}

void convert_arg_reduce(NodeContext& context) {
  Compose c(context);
  const ir::ValueId given = context.input(0);
  const int64_t axis = context.normalize_axis(context.int_attr("axis", 0), context.rank(given));
  const bool keepdims = context.int_attr("keepdims", 1) != 0;
  const bool select_last = context.int_attr("select_last_index", 0) != 0;
  const ir::Attrs attrs{
      {"axis", axis}, {"keepdims", int64_t{keepdims}}, {"select_last", int64_t{select_last}}};
  const bool is_max = context.node().op_type == "ArgMax";
  const ir::ValueId x = filled_along(context, given, axis, is_max ? "lowest" : "largest");
  ir::ValueId result = context.add(is_max ? "arg_max" : "arg_min", {x}, attrs);
  // Where all elements are as what fills behind the count, the last of them stands before it.
  if (x != given && select_last)
    result = c.binary("min", result, c.minus(c.reshape(*count_along(context, given, axis), {}), 1));
  context.set_output(0, result);
}

}  // namespace tensormill::frontend::onnx
