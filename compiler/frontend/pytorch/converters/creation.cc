// Tensors that are made of numbers.
#include <cmath>

#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// A value of its own, which may be written to.
void set_filled(NodeContext& node, const ir::SymShape& shape, V value) {
  const V y = Compose(node).expand(value, shape);
  node.set_output(0, y == value ? node.add("identity", {value}) : y);
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
  if (takes(node, "fill_value")) return set_filled(node, shape, node.as(node.operand("fill_value"), dtype));
  Operand value;
  value.number = ir::SymInt(node.op().find("ones") != std::string::npos ? 1 : 0);
  set_filled(node, shape, node.as(value, dtype));
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

/// Of whole numbers of which a run works out the first one or the end.
void set_range_of_run(NodeContext& node, DType dtype) {
  Compose c(node);
  const auto whole = [&](const char* name) {
    const Operand operand = node.operand(name);
    if (is_float(operand.type.dtype))
      node.unsupported(name, "of floats that a run works out it is not implemented");
    return node.as(operand, DType::kInt64);
  };
  const V last = whole("end"), first = takes(node, "start") ? whole("start") : c.number(last, 0);
  const int64_t width = takes(node, "step") ? node.integer("step") : 1;
  if (width == 0) node.invalid("a step of 0");
  const V apart = width > 0 ? c.sub(last, first) : c.sub(first, last);
  const int64_t step = std::abs(width);
  std::optional<ir::SymInt> count = node.said_extent(0);
  if (!count) {
    const V rounds = floor_divided(node, c.add(apart, c.number(apart, static_cast<double>(step - 1))),
                                   c.number(apart, static_cast<double>(step)));
    count = node.bind_number(c.binary("max", rounds, c.number(rounds, 0)), 0, std::nullopt);
  }
  V y = c.iota(*count);
  if (width != 1) y = c.mul(y, c.ints({width}, {}));
  node.set_output(0, c.cast(c.add(y, first), dtype));
}

}  // namespace

void convert_arange(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  const DType dtype = node.output_dtype();
  if (node.run_number("end") || (takes(node, "start") && node.run_number("start")))
    return set_range_of_run(node, dtype);
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
