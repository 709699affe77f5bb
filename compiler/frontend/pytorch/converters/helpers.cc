#include "compiler/frontend/pytorch/converters/helpers.h"

#include "compiler/build/maps/windows.h"

namespace tensormill::frontend::pytorch {

bool takes(const NodeContext& node, std::string_view name) {
  for (const SchemaArgument& argument : node.row().arguments)
    if (argument.name == name) return true;
  return false;
}

void check_rank(const NodeContext& node, V x, int64_t rank) {
  if (node.rank(x) != rank)
    node.invalid("an operand of shape " + to_string(node.shape(x)) + ", expected rank " +
                 std::to_string(rank));
}

V python_mod(NodeContext& node, V x, V y) {
  Compose c(node);
  if (!is_float(node.dtype(x))) return node.add("mod", {x, y}, {{"fmod", int64_t{0}}});
  const V rest = node.add("mod", {x, y}, {{"fmod", int64_t{1}}});
  const V is_other = node.add("xor", {is_negative(node, rest), is_negative(node, y)});
  return c.where(both(node, is_other, negated(node, is_zero(node, rest))), c.add(rest, y), rest);
}

V floor_divided(NodeContext& node, V x, V y) {
  Compose c(node);
  const V whole = c.div(c.sub(x, python_mod(node, x, y)), y);
  if (!is_float(node.dtype(x))) return whole;
  // By 0 it is infinite, or no number.
  return c.where(is_zero(node, y), c.div(x, y), c.unary("round", whole));
}

V quotient(NodeContext& node, V x, V y) {
  Compose c(node);
  const V result = c.div(x, y);
  if (!is_float(node.dtype(x))) return result;
  const V part = c.where(is_negative(node, result), c.unary("ceil", result), c.unary("floor", result));
  return part;
}

std::vector<int64_t> reduced_axes(NodeContext& node, const char* name, V x) {
  ir::Ints axes = node.axes(name, node.rank(x));
  if (axes.empty()) axes = Compose(node).count_to(node.rank(x));
  if (node.rank(x) == 0) axes.clear();
  return axes;
}

V count_of(NodeContext& node, V like, V x, const std::vector<int64_t>& axes, double less) {
  Compose c(node);
  ir::SymInt count = 1;
  for (const int64_t axis : axes) count = node.product(count, node.shape(x)[static_cast<size_t>(axis)]);
  const V number = c.extent(like, count);
  if (less == 0) return number;
  return c.binary("max", c.minus(number, less), c.number(number, 0));
}

V with_axis(NodeContext& node, V x) { return node.rank(x) == 0 ? Compose(node).reshape(x, {1}) : x; }

V sorted_positions(NodeContext& node, V x, int64_t axis, const ir::SymInt& k, bool largest) {
  // Kernels of sorted rows look at all elements of a row for each.
  constexpr int64_t kSortedByKernel = 256;
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const bool by_host = !extent.is_constant() || extent.hint() > kSortedByKernel;
  return node.add(by_host ? "sort_positions" : "arg_top_k", {numeric(node, x)},
                  {{"axis", axis}, {"k", k}, {"largest", int64_t{largest}}});
}

DType summed_in(DType dtype) {
  const bool is_short = !is_float(dtype) && dtype_info(dtype).bits < 32;
  return is_short || dtype == DType::kBool ? DType::kInt64 : dtype;
}

std::string reduction_for(DType dtype, const std::string& reduction) {
  if (dtype != DType::kBool) return reduction;
  return reduction == "add" ? "max" : reduction == "mul" ? "min" : reduction;
}

V scattered(NodeContext& node, V x, V indices, V updates, int64_t axis, const std::string& reduction) {
  if (node.dtype(x) == DType::kBool)
    return to_bool(node, scattered(node, numeric(node, x), indices, numeric(node, updates), axis,
                                   reduction_for(DType::kBool, reduction)));
  constexpr int64_t kScatteredByKernel = int64_t{1} << 16;
  const ir::SymShape shape = node.shape(x), places = node.shape(indices);
  int64_t work = 1;
  for (const ir::SymInt& extent : shape) work *= std::max<int64_t>(extent.hint(), 1);
  const ir::SymInt& along = places[static_cast<size_t>(axis)];
  const bool by_host = !along.is_constant() || !shape.is_constant() ||
                       work > kScatteredByKernel / std::max<int64_t>(along.hint(), 1);
  return node.add(by_host ? "scatter" : "scatter_elements", {x, indices, updates},
                  {{"axis", axis}, {"reduction", reduction}});
}

std::optional<V> run_time_number(NodeContext& node, const char* name, bool any) {
  if (const std::optional<RunNumber> number = node.run_number(name)) return number->value;
  if (!node.has(name)) return std::nullopt;
  const ir::SymInt number = node.sym(name);
  if (number.is_constant() || !number.table()->is_run_time(number.expr())) return std::nullopt;
  if (!any && is_proven(ir::Relation::kLessEqual, 0, number)) return std::nullopt;
  return Compose(node).dims({number}, {});
}

V from_front(NodeContext& node, V number, const ir::SymInt& extent) {
  Compose c(node);
  const V whole = c.cast(number, DType::kInt64);
  return c.where(is_negative(node, whole), c.add(whole, c.dims({extent}, {})), whole);
}

namespace {

/// An end of a slice within the axis.
ir::SymInt place_of(NodeContext& node, const char* name, const ir::SymInt& otherwise,
                    const ir::SymInt& extent) {
  const std::optional<V> of_run = run_time_number(node, name);
  if (!of_run) return build::place_within(node.has(name) ? node.sym(name) : otherwise, extent, 0, extent);
  Compose c(node);
  const V limit = c.dims({extent}, {});
  const V place = c.binary("min", from_front(node, *of_run, extent), limit);
  return node.bind_number(c.binary("max", place, c.number(place, 0)), 0, extent);
}

}  // namespace

build::AxisSlice slice_of(NodeContext& node, const ir::SymInt& extent,
                          const std::optional<ir::SymInt>& said) {
  const int64_t step = node.integer("step");
  if (step < 1) node.invalid("a step of " + std::to_string(step));
  if (!run_time_number(node, "start") && !run_time_number(node, "end")) {
    const ir::SymInt start = node.has("start") ? node.sym("start") : ir::SymInt(0);
    const ir::SymInt end = node.has("end") ? node.sym("end") : ir::SymInt(INT64_MAX);
    return build::slice_within(start, end, step, extent);
  }
  const ir::SymInt start = place_of(node, "start", 0, extent), end = place_of(node, "end", INT64_MAX, extent);
  if (!said) return {start, max(floordiv(end - start - 1, step) + 1, 0), step};
  if (!ir::demand(ir::Relation::kLessEqual, start + *said * step - (step - 1), extent))
    node.invalid("elements from " + to_string(start) + " of an axis of " + to_string(extent));
  return {start, *said, step};
}

V gathered(NodeContext& node, V x, V indices, int64_t axis) {
  Compose c(node);
  if (node.dtype(indices) != DType::kInt32) indices = c.cast(indices, DType::kInt64);
  return c.gather(x, indices, axis);
}

V with_batch(NodeContext& node, V x, size_t spatial) {
  const size_t rank = node.shape(x).size();
  if (rank == spatial + 2) return x;
  if (rank != spatial + 1) node.invalid("the input has rank " + std::to_string(rank));
  return Compose(node).unsqueeze(x, 0);
}

std::vector<int64_t> spread(NodeContext& node, const char* name, size_t count) {
  ir::Ints values = node.ints(name);
  if (values.size() == 1) values.assign(count, values[0]);
  if (values.size() != count)
    node.invalid("argument " + std::string(name) + " has " + std::to_string(values.size()) +
                 " numbers, expected " + std::to_string(count));
  return values;
}

std::vector<int64_t> window_numbers(NodeContext& node, const char* name, size_t count, int64_t least) {
  std::vector<int64_t> values = spread(node, name, count);
  for (const int64_t value : values)
    if (value < least || value > build::kMaxWindowNumber)
      node.invalid("argument " + std::string(name) + " is " + std::to_string(value));
  return values;
}

V reduced_loss(NodeContext& node, V losses) {
  Compose c(node);
  const int64_t reduction = node.integer("reduction");
  if (reduction < 0 || reduction > 2) node.invalid("reduction is " + std::to_string(reduction));
  if (reduction == 0) return losses;
  if (reduction == 1) return c.reduce("reduce_mean", losses, c.count_to(node.rank(losses)), false);
  return c.reduce("reduce_sum", c.cast(losses, summed_in(node.dtype(losses))), c.count_to(node.rank(losses)),
                  false);
}

V softmax_along(NodeContext& node, const char* op, V x, int64_t axis) {
  const bool was_scalar = node.rank(x) == 0;
  const V y = node.add(op, {with_axis(node, x)}, {{"axis", axis}});
  return was_scalar ? Compose(node).reshape(y, {}) : y;
}

V padded(NodeContext& node, V x, const ir::SymShape& pads, const std::string& mode, double value) {
  return node.add("pad", {x}, {{"pads", pads}, {"mode", mode}, {"value", value}});
}

}  // namespace tensormill::frontend::pytorch
