// Tensors that are made of numbers.
#include <cmath>

#include "compiler/build/run_numbers.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// A value of its own, which may be written to.
V filled_with(NodeContext& node, const ir::SymShape& shape, V value) {
  const V y = Compose(node).expand(value, shape);
  return y == value ? node.add("identity", {value}) : y;
}
void set_filled(NodeContext& node, const ir::SymShape& shape, V value) {
  node.set_output(0, filled_with(node, shape, value));
}

ir::SymShape wanted_shape(NodeContext& node) {
  if (takes(node, "size")) return node.syms("size");
  return node.shape(node.tensor("self"));
}

}  // namespace

// zeros, ones, full, empty, in all their forms: what is empty holds zeros.
void convert_filled(NodeContext& node) {
  if (takes(node, "dtype")) static_cast<void>(node.optional_dtype("dtype"));
  if (takes(node, "self")) static_cast<void>(node.tensor("self"));
  const ir::SymShape shape = wanted_shape(node);
  const DType dtype = node.output_dtype();
  Operand value;
  value.number = ir::SymInt(node.op().find("ones") != std::string::npos ? 1 : 0);
  if (takes(node, "fill_value")) value = node.operand("fill_value");
  const V y = filled_with(node, shape, node.as(value, dtype));
  if (!takes(node, "memory_format")) return node.set_output(0, y);
  const bool is_like = takes(node, "self");
  node.set_new(y, "self", node.memory_format(is_like ? MemoryFormat::kPreserve : MemoryFormat::kRows));
}

void convert_scalar_tensor(NodeContext& node) {
  static_cast<void>(node.optional_dtype("dtype"));
  set_filled(node, {}, node.as(node.operand("s"), node.output_dtype()));
}

// Its value in place of all elements: fill, fill_, zero_.
void convert_fill(NodeContext& node) {
  const V x = node.tensor("self");
  Operand value;
  value.number = ir::SymInt(0);
  if (node.op() == "fill") value = node.operand("value");
  set_filled(node, node.shape(x), node.as(value, node.dtype(x)));
}

void convert_copy(NodeContext& node) {
  const V x = node.tensor("self"), source = node.tensor("src");
  set_filled(node, node.shape(x), Compose(node).cast(source, node.dtype(x)));
}

// start, start + step ... below end.
namespace {

/// Operands of a range of which a run works out one, in `dtype`: without dims.
struct RangeOfRun {
  V first, last, step;
};
RangeOfRun range_of(NodeContext& node, DType dtype) {
  const V last = node.as(node.operand("end"), dtype);
  const auto other = [&](const char* name, double otherwise) {
    return takes(node, name) ? node.as(node.operand(name), dtype) : node.scalar_like(last, otherwise);
  };
  return {other("start", 0), last, other("step", 1)};
}

/// The number of elements where a run works out the step: what is between the ends by it, rounded up.
V count_by(NodeContext& node, const RangeOfRun& range) {
  Compose c(node);
  const V is_none = is_zero(node, range.step);
  const V step = c.where(is_none, c.number(range.step, 1), range.step);
  const V rounds = c.unary("neg", floor_divided(node, c.sub(range.first, range.last), step));
  return build::required(node, rounds, negated(node, is_none), "a step of 0");
}

/// The whole part of a step that is known.
int64_t whole_step(NodeContext& node) {
  const Number step = node.number("step");
  const auto* real = std::get_if<double>(&step);
  if (real == nullptr) return node.integer("step");
  if (!(std::fabs(*real) < 0x1p53)) node.invalid("a step of " + std::to_string(*real));
  return static_cast<int64_t>(*real);
}

/// Of whole numbers.
void set_range_of_run(NodeContext& node, DType dtype) {
  Compose c(node);
  const RangeOfRun range = range_of(node, DType::kInt64);
  const bool is_known = !takes(node, "step") || !node.run_number("step");
  const int64_t width = is_known && takes(node, "step") ? whole_step(node) : 1;
  if (width == 0) node.invalid("a step of 0");
  std::optional<ir::SymInt> count = node.said_extent(0);
  if (!count) {
    const V apart = width > 0 ? c.sub(range.last, range.first) : c.sub(range.first, range.last);
    const auto step = static_cast<double>(std::abs(width));
    const V rounds = is_known ? floor_divided(node, c.plus(apart, step - 1), c.number(apart, step))
                              : count_by(node, range);
    count = node.bind_number(c.binary("max", rounds, c.number(rounds, 0)), 0, std::nullopt);
  }
  V y = c.iota(*count);
  if (width != 1 || !is_known) y = c.mul(y, range.step);
  node.set_output(0, c.cast(c.add(y, range.first), dtype));
}

/// Of real numbers, counted in double precision as torch does it, which refuses ends on the other side of the
/// start.
void set_real_range_of_run(NodeContext& node, DType dtype) {
  constexpr double kMost = 0x1p53;
  Compose c(node);
  const RangeOfRun range = range_of(node, DType::kFloat64);
  const V rounds = c.div(c.sub(range.last, range.first), range.step);
  const V is_count = both(node, c.binary("greater_equal", rounds, c.number(rounds, 0)),
                          c.binary("less", rounds, c.number(rounds, kMost)));
  const V whole = c.unary("ceil", c.where(is_count, rounds, c.number(rounds, 0)));
  const V checked = build::required(node, c.cast(whole, DType::kInt64), is_count, "a range without an end");
  const ir::SymInt count = node.bind_number(checked, 0, std::nullopt);
  const DType wide = computed_in(dtype) == dtype ? DType::kFloat64 : computed_in(dtype);
  const V y = c.mul(c.cast(c.iota(count), wide), c.cast(range.step, wide));
  node.set_output(0, c.cast(c.add(y, c.cast(range.first, wide)), dtype));
}

bool is_of_run(NodeContext& node, const char* name) {
  return takes(node, name) && node.run_number(name).has_value();
}

bool is_real(NodeContext& node, const char* name) {
  return takes(node, name) && is_float(node.operand(name).type.dtype);
}

}  // namespace

void convert_arange(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  const DType dtype = node.output_dtype();
  if (is_of_run(node, "start") || is_of_run(node, "end") || is_of_run(node, "step")) {
    const bool has_reals = is_real(node, "start") || is_real(node, "end") || is_real(node, "step");
    // Of int64 torch takes the whole parts of all three before it counts.
    if (!has_reals || dtype == DType::kInt64) return set_range_of_run(node, dtype);
    if (!is_float(dtype))
      node.unsupported("dtype", "of floats that a run works out short integers are not implemented");
    return set_real_range_of_run(node, dtype);
  }
  Number start = ir::SymInt(0), step = ir::SymInt(1);
  if (takes(node, "start")) start = node.number("start");
  if (takes(node, "step")) step = node.number("step");
  const Number end = node.number("end");
  const auto *first = std::get_if<ir::SymInt>(&start), *last = std::get_if<ir::SymInt>(&end),
             *by = std::get_if<ir::SymInt>(&step);
  if (first != nullptr && last != nullptr && by != nullptr) {
    const int64_t width = *by;
    if (width == 0) node.invalid("a step of 0");
    const ir::SymInt apart = width > 0 ? *last - *first + (width - 1) : *first - *last + (-width - 1);
    const ir::SymInt count = max(floordiv(apart, std::abs(width)), 0);
    V y = c.iota(count);
    if (width != 1) y = c.mul(y, c.ints({width}, {}));
    if (!is_proven(ir::Relation::kEqual, *first, 0)) y = c.add(y, c.dims({*first}, {}));
    y = c.cast(y, dtype);
    return node.set_output(0, y);
  }
  const double from = takes(node, "start") ? node.real("start") : 0, to = node.real("end"),
               width = takes(node, "step") ? node.real("step") : 1;
  const double count = std::ceil((to - from) / width);
  if (!std::isfinite(count) || count > static_cast<double>(build::kMaxListed))
    node.invalid("a range without an end");
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(std::max(count, 0.0)); ++i)
    values.push_back(from + static_cast<double>(i) * width);
  node.set_output(0, c.doubles(dtype, values, {static_cast<int64_t>(values.size())}));
}

// From both ends, as torch counts.
void convert_linspace(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  const double start = node.real("start"), end = node.real("end");
  const int64_t steps = node.integer("steps");
  if (steps < 0 || steps > build::kMaxListed) node.invalid(std::to_string(steps) + " steps");
  const double width = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  std::vector<double> values;
  for (int64_t i = 0; i < steps; ++i)
    values.push_back(i < steps / 2 ? start + width * static_cast<double>(i)
                                   : (steps == 1 ? start : end - width * static_cast<double>(steps - 1 - i)));
  node.set_output(0, c.doubles(node.output_dtype(), values, {steps}));
}

void convert_eye(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  const ir::SymInt rows = node.sym("n"), columns = takes(node, "m") ? node.sym("m") : rows;
  const V y = c.binary("equal", c.iota(rows, {rows, 1}), c.iota(columns, {1, columns}));
  node.set_output(0, node.as_output(y));
}

void convert_one_hot(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const int64_t classes = node.integer("num_classes");
  if (classes < 1)
    node.unsupported("num_classes", "a number that follows from the elements is not implemented");
  node.set_output(
      0, node.add("one_hot", {x, c.ints({0, 1}, {2})}, {{"axis", node.rank(x)}, {"depth", classes}}));
}

// Rows and columns of what stands below or above a diagonal.
void convert_tri_indices(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  const int64_t rows = node.integer("row"), columns = node.integer("col"), offset = node.integer("offset");
  if (rows < 0 || columns < 0 || rows > build::kMaxListed || columns > build::kMaxListed ||
      rows * columns > build::kMaxListed)
    node.invalid("a matrix of " + std::to_string(rows) + " by " + std::to_string(columns));
  std::vector<int64_t> from, to;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const bool is_below = column - row <= offset, is_above = column - row >= offset;
      if (node.op() == "tril_indices" ? !is_below : !is_above) continue;
      from.push_back(row);
      to.push_back(column);
    }
  }
  const auto count = static_cast<int64_t>(from.size());
  from.insert(from.end(), to.begin(), to.end());
  node.set_output(0, node.as_output(c.ints(from, {2, count})));
}

}  // namespace tensormill::frontend::pytorch
