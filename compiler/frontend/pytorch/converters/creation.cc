// Tensors that are made of numbers.
#include <cmath>

#include "compiler/build/extents/run_numbers.h"
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
  const MemoryFormat format = node.memory_format(is_like ? MemoryFormat::kPreserve : MemoryFormat::kRows);
  if (!is_like && format == MemoryFormat::kPreserve) node.invalid("memory_format is that of nothing");
  node.set_new(y, "self", format);
}

// Where its elements lie matters to nothing but to those of other tensors that are views of it.
void convert_empty_strided(NodeContext& node) {
  static_cast<void>(node.optional_dtype("dtype"));
  static_cast<void>(node.syms("stride"));
  if (takes(node, "self")) static_cast<void>(node.tensor("self"));
  Operand none;
  none.number = ir::SymInt(0);
  set_filled(node, node.syms("size"), node.as(none, node.output_dtype()));
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
  Compose c(node);
  const auto number = [&](const char* name) {
    const std::optional<ExtentReal> real = node.extent_real(name);
    return real ? c.cast(real->value, dtype) : node.as(node.operand(name), dtype);
  };
  const V last = number("end");
  const auto other = [&](const char* name, double otherwise) {
    return takes(node, name) ? number(name) : node.scalar_like(last, otherwise);
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

/// Of whole numbers.
void set_run_time_range(NodeContext& node, DType dtype) {
  Compose c(node);
  const RangeOfRun range = range_of(node, DType::kInt64);
  const bool is_known = !takes(node, "step") || !node.run_number("step");
  const int64_t width = is_known && takes(node, "step") ? node.integer("step") : 1;
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

/// As many elements of a range of real numbers, or of their whole parts, in the type in which torch computes
/// them.
V counted_from(NodeContext& node, const RangeOfRun& range, const ir::SymInt& count, DType dtype) {
  Compose c(node);
  const DType wide = !is_float(dtype)              ? DType::kInt64
                     : computed_in(dtype) == dtype ? DType::kFloat64
                                                   : computed_in(dtype);
  const V y = c.mul(c.cast(c.iota(count), wide), c.cast(range.step, wide));
  return c.cast(c.add(y, c.cast(range.first, wide)), dtype);
}

/// The number of elements in double precision, as torch counts where a number is real, of whatever type the
/// elements are. It refuses ends on the other side of the start.
ir::SymInt count_of_reals(NodeContext& node, const RangeOfRun& range) {
  constexpr double kMost = 0x1p53;
  Compose c(node);
  const V rounds = c.div(c.sub(range.last, range.first), range.step);
  const V is_count = both(node, c.binary("greater_equal", rounds, c.number(rounds, 0)),
                          c.binary("less", rounds, c.number(rounds, kMost)));
  const V whole = c.unary("ceil", c.where(is_count, rounds, c.number(rounds, 0)));
  const V checked = build::required(node, c.cast(whole, DType::kInt64), is_count, "a range without an end");
  return node.bind_number(checked, 0, std::nullopt);
}

bool is_run_time(NodeContext& node, const char* name) {
  return takes(node, name) && (node.run_number(name) || node.extent_real(name));
}

bool is_real(NodeContext& node, const char* name) {
  return takes(node, name) && (node.extent_real(name) || is_float(node.operand(name).type.dtype));
}

}  // namespace

namespace {

/// Numbers of a range of which none is a run's.
struct Range {
  Number first, last, step;
};

bool is_known(const Number& number) {
  const auto* whole = std::get_if<ir::SymInt>(&number);
  return whole == nullptr || whole->is_constant();
}

/// Of whole numbers.
void set_whole_range(NodeContext& node, const ir::SymInt& first, const ir::SymInt& last, int64_t width,
                     DType dtype) {
  Compose c(node);
  if (width == 0) node.invalid("a step of 0");
  const ir::SymInt apart = width > 0 ? last - first + (width - 1) : first - last + (-width - 1);
  const ir::SymInt count = max(floordiv(apart, std::abs(width)), 0);
  V y = c.iota(count);
  if (width != 1) y = c.mul(y, c.ints({width}, {}));
  if (!is_proven(ir::Relation::kEqual, first, 0)) y = c.add(y, c.dims({first}, {}));
  node.set_output(0, c.cast(y, dtype));
}

/// Of real numbers that are known, as convert_arange's other ranges of them.
void set_known_range(NodeContext& node, double first, double last, double step, DType dtype) {
  Compose c(node);
  const std::optional<ir::SymInt> said = node.said_extent(0);
  const double rounds =
      said && said->is_constant() ? static_cast<double>(said->hint()) : std::ceil((last - first) / step);
  const bool is_whole = !is_float(dtype);
  const bool fits = std::fabs(first) < 0x1p62 && std::fabs(step) < 0x1p40;
  if (!std::isfinite(rounds) || rounds > static_cast<double>(build::kMaxListed) || (is_whole && !fits))
    node.invalid("a range without an end");
  const auto count = static_cast<int64_t>(std::max(rounds, 0.0));
  if (is_whole) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<int64_t>(first) + i * static_cast<int64_t>(step));
    return node.set_output(0, c.cast(c.ints(values, {count}), dtype));
  }
  const bool is_short = dtype_info(dtype).bits < 32;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(is_short ? static_cast<float>(first) + static_cast<float>(i) * static_cast<float>(step)
                              : first + static_cast<double>(i) * step);
  node.set_output(0, c.doubles(dtype, values, {count}));
}

/// The number of elements of a range, where its numbers have so few digits that float64 counts as whole
/// numbers do.
std::optional<ir::SymInt> counted_exactly(NodeContext& node) {
  const auto number = [&](const char* name, int64_t otherwise) {
    return takes(node, name) ? node.ratio(name) : Ratio{otherwise};
  };
  const std::optional<Ratio> first = number("start", 0), last = number("end", 0), step = number("step", 1);
  const std::optional<Ratio> apart = first && last ? joined("sub", *last, *first) : std::nullopt;
  const std::optional<Ratio> rounds = apart && step ? joined("truediv", *apart, *step) : std::nullopt;
  return rounds ? std::optional(max(ceil_of(*rounds), 0)) : std::nullopt;
}

/// Of real numbers that free extents or a run decide.
void set_range_of_reals(NodeContext& node, DType dtype) {
  const RangeOfRun range = range_of(node, DType::kFloat64);
  const std::optional<ir::SymInt> count = counted_exactly(node);
  node.set_output(0, counted_from(node, range, count ? *count : count_of_reals(node, range), dtype));
}

}  // namespace

// Of one real number torch counts in float64, and takes whole parts for the elements of whole types.
void convert_arange(NodeContext& node) {
  static_cast<void>(node.optional_dtype("dtype"));
  const DType dtype = node.output_dtype();
  const bool has_reals = is_real(node, "start") || is_real(node, "end") || is_real(node, "step");
  if (is_run_time(node, "start") || is_run_time(node, "end") || is_run_time(node, "step")) {
    if (!has_reals) return set_run_time_range(node, dtype);
    return set_range_of_reals(node, dtype);
  }
  const Range range = {takes(node, "start") ? node.number("start") : ir::SymInt(0), node.number("end"),
                       takes(node, "step") ? node.number("step") : ir::SymInt(1)};
  if (!has_reals)
    return set_whole_range(node, takes(node, "start") ? node.sym("start") : ir::SymInt(0), node.sym("end"),
                           takes(node, "step") ? node.integer("step") : 1, dtype);
  if (is_known(range.first) && is_known(range.last) && is_known(range.step))
    return set_known_range(node, takes(node, "start") ? node.real("start") : 0, node.real("end"),
                           takes(node, "step") ? node.real("step") : 1, dtype);
  set_range_of_reals(node, dtype);
}

namespace {

/// As many numbers from start to end as steps: from both ends, as torch counts.
std::vector<double> spaced_numbers(NodeContext& node) {
  const double start = node.real("start"), end = node.real("end");
  const int64_t steps = node.integer("steps");
  if (steps < 0 || steps > build::kMaxListed) node.invalid(std::to_string(steps) + " steps");
  const double width = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  std::vector<double> values;
  for (int64_t i = 0; i < steps; ++i)
    values.push_back(i < steps / 2 ? start + width * static_cast<double>(i)
                                   : (steps == 1 ? start : end - width * static_cast<double>(steps - 1 - i)));
  return values;
}

}  // namespace

void convert_linspace(NodeContext& node) {
  static_cast<void>(node.optional_dtype("dtype"));
  const std::vector<double> values = spaced_numbers(node);
  const auto count = static_cast<int64_t>(values.size());
  node.set_output(0, Compose(node).doubles(node.output_dtype(), values, {count}));
}

// Powers of the base, from start to end.
void convert_logspace(NodeContext& node) {
  static_cast<void>(node.optional_dtype("dtype"));
  const double base = node.real("base");
  std::vector<double> values = spaced_numbers(node);
  for (double& value : values) value = std::pow(base, value);
  const auto count = static_cast<int64_t>(values.size());
  node.set_output(0, Compose(node).doubles(node.output_dtype(), values, {count}));
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
