
#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_axes.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"

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
ir::ValueId mean_of_data_dependent(NodeContext& context, ir::ValueId filled, const DataShape& counts,
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
  return op == "reduce_mean" && filled != x ? mean_of_data_dependent(context, filled, shape, attrs)
                                            : context.add(op, {filled}, attrs);
}

namespace {

/// What is done to each element first, what along one axis after the other, and what in the end.
struct Steps {
  const char* first = nullptr;
  std::string along;
  const char* last = nullptr;
};

Steps steps_of(const std::string& op) {
  if (op == "reduce_mean") return {nullptr, "reduce_sum", nullptr};
  if (op == "reduce_l1") return {"abs", "reduce_sum", nullptr};
  if (op == "reduce_l2") return {"square", "reduce_sum", "sqrt"};
  if (op == "reduce_sum_square") return {"square", "reduce_sum", nullptr};
  if (op == "reduce_log_sum") return {nullptr, "reduce_sum", "log"};
  return {nullptr, op, nullptr};
}

/// x, along the axes that the run names what is reduced there in place of each element. An axis that may be
/// empty is one longer, so that there is room for it.
ir::ValueId spread(NodeContext& context, const std::string& op, ir::ValueId x, const NamedAxes& axes) {
  Compose c(context);
  for (int64_t d = 0; d < context.rank(x); ++d) {
    const ir::ValueId along = c.reduce(op.c_str(), x, {d}, true);
    if (c.shape(x)[static_cast<size_t>(d)] == 0) x = longer_by(context, x, 1, d);
    x = c.where(c.cast(axes.flag(context, d), DType::kBool), along, x);
  }
  return x;
}

/// The product of what there is along the named axes, i64 [1].
ir::ValueId number_reduced(NodeContext& context, ir::ValueId extents, const NamedAxes& axes) {
  Compose c(context);
  const ir::ValueId own = c.where(c.cast(axes.flags, DType::kBool), extents, c.ints({1}, {1}));
  return c.reduce("reduce_prod", own, {0}, true);
}

/// The reduction of x over axes that operand 1 names in a run.
ir::ValueId dynamic_reduce(NodeContext& context, const std::string& op, ir::ValueId x) {
  Compose c(context);
  const NamedAxes axes = named_axes(context, 1, context.rank(x));
  const ir::ValueId extents = dynamic_extents(context, x);
  const Steps steps = steps_of(op);
  // What halves are added up to is rounded once.
  const DType dtype = c.dtype(x);
  const bool is_half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  x = filled_behind(context, is_half ? c.cast(x, DType::kFloat32) : x, neutral_element(op));
  if (steps.first != nullptr)
    x = steps.first == std::string("square") ? c.mul(x, x) : c.unary(steps.first, x);
  x = spread(context, steps.along, x, axes);
  if (op == "reduce_mean")
    x = c.div(x, c.reshape(c.cast(number_reduced(context, extents, axes), c.dtype(x)), {}));
  if (steps.last != nullptr) x = c.unary(steps.last, x);
  x = c.cast(x, dtype);
  const ir::ValueId counts = c.where(c.cast(axes.flags, DType::kBool), c.ints({1}, {1}), extents);
  if (context.int_attr("keepdims", 1) == 0) return without_axes(context, x, counts, axes);
  for (int64_t d = 0; d < context.rank(x); ++d) x = take_first(context, x, c.slice(counts, 0, d, 1), d);
  return x;
}

}  // namespace

// Axes are an attribute, and an operand from opset 13 (ReduceSum) or 18 (the others) on.
void convert_reduce(NodeContext& context) {
  const std::string op = reduce_op(context.node().op_type);
  const ir::ValueId x = context.input(0);
  const DType dtype = context.type(x).dtype;
  const DType wide = reduction_dtype(op, dtype);
  const auto cast = [&](ir::ValueId value, DType to) {
    return wide == dtype ? value : context.add("cast", {value}, {{"to", to}});
  };
  if (context.has_input(1) && !is_static(context, 1))
    return context.set_output(0, cast(dynamic_reduce(context, op, cast(x, wide)), dtype));
  const int64_t rank = context.rank(x);
  ir::Ints axes =
      context.has_input(1) ? context.known_ints(1, "axes") : ir::SymShape(context.ints_attr("axes", {}));
  if (axes.empty() && context.int_attr("noop_with_empty_axes", 0) != 0) {
    context.set_output(0, reduced_over_no_axes(context, x));
    return;
  }
  axes = axes.empty() ? Compose(context).count_to(rank) : context.normalize_axes(axes, rank);
  const ir::Attrs attrs{{"axes", axes}, {"keepdims", int64_t{context.int_attr("keepdims", 1) != 0}}};
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
