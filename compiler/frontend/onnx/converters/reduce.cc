#include <algorithm>
#include <numeric>

#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/data_extents.h"

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

/// The mean over axes of which one has `data.count` elements.
ir::ValueId mean_of_counted(NodeContext& context, ir::ValueId filled, const DataExtent& data,
                            const ir::Attrs& attrs) {
  const ir::ValueType type = context.type(filled);
  int64_t others = 1;
  for (const int64_t axis : attrs.ints_of("axes")) {
    if (static_cast<size_t>(axis) != data.axis)
      others = context.product(others, type.shape[static_cast<size_t>(axis)]);
  }
  ir::ValueId count = context.add("mul", {data.count, context.int64_constant({others})});
  if (type.dtype != DType::kInt64) count = context.add("cast", {count}, {{"to", type.dtype}});
  return context.add("div", {context.add("reduce_sum", {filled}, attrs), context.reshape(count, {})});
}

/// The reduction of x, whose axes may be as long as data says.
ir::ValueId reduced(NodeContext& context, const std::string& op, ir::ValueId x, const ir::Attrs& attrs) {
  const DataShape shape = data_shape(context.graph(), x);
  const std::vector<int64_t>& axes = attrs.ints_of("axes");
  const bool counted = shape.extent && std::find(axes.begin(), axes.end(),
                                                 static_cast<int64_t>(shape.extent->axis)) != axes.end();
  if (!counted) return context.add(op, {x}, attrs);
  const ir::ValueId filled = context.add(
      "fill_behind", {x, shape.extent->count},
      {{"axis", static_cast<int64_t>(shape.extent->axis)}, {"with", std::string(neutral_element(op))}});
  return op == "reduce_mean" ? mean_of_counted(context, filled, *shape.extent, attrs)
                             : context.add(op, {filled}, attrs);
}

}  // namespace

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
  const int64_t axis = context.normalize_axis(context.int_attr("axis", 0), context.rank(context.input(0)));
  const ir::Attrs attrs{{"axis", axis},
                        {"keepdims", int64_t{context.int_attr("keepdims", 1) != 0}},
                        {"select_last", int64_t{context.int_attr("select_last_index", 0) != 0}}};
  const std::string op = context.node().op_type == "ArgMax" ? "arg_max" : "arg_min";
  context.set_output(0, context.add(op, {context.input(0)}, attrs));
}

}  // namespace tensormill::frontend::onnx
