// Shape arithmetic, and tensors that follow from shapes and numbers.
#include <algorithm>
#include <cmath>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/moves/places.h"
#include "compiler/frontend/tensorflow/node_context.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill::frontend::tensorflow {

void convert_shape(NodeContext& node) {
  Compose c(node);
  const DType to = node.dtype_attr("out_type", DataType::kInt32);
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    // The rows of a ragged tensor, where they are handed on as one value, are elements of an axis.
    const bool is_list = std::holds_alternative<std::shared_ptr<const TensorList>>(node.item(i).value);
    const ir::SymShape shape = is_list ? ir::SymShape{node.any_list(i).count()} : node.shape(node.input(i));
    node.set_output(i, c.cast(node.extents(shape), to));
  }
}

void convert_rank(NodeContext& node) {
  node.set_output(0, Compose(node).cast(Compose(node).ints({node.rank(node.input(0))}, {}), DType::kInt32));
}

void convert_size(NodeContext& node) {
  Compose c(node);
  const DType to = node.dtype_attr("out_type", DataType::kInt32);
  node.set_output(0, c.cast(c.dims({num_elements(node.shape(node.input(0)))}, {}), to));
}

void convert_fill(NodeContext& node) {
  node.set_output(0, Compose(node).expand(node.input(1), node.extents_at(0, "dims")));
}

// Of elements that mean nothing.
void convert_empty(NodeContext& node) {
  node.set_output(0, Compose(node).filled(node.dtype_attr("dtype"), node.extents_at(0, "shape"), 0));
}

void convert_filled_like(NodeContext& node) {
  const V x = node.input(0);
  node.set_output(0, Compose(node).filled(node.dtype(x), node.shape(x), node.op() == "OnesLike" ? 1 : 0));
}

// The shape of a variable.
void convert_variable_shape(NodeContext& node) {
  const V variable = node.variable(node.resource(0));
  const DType to = node.dtype_attr("out_type", DataType::kInt32);
  node.set_output(0, Compose(node).cast(node.extents(node.shape(variable)), to));
}

namespace {

/// Where an axis of one format stands in another one.
int64_t place_in_format(const NodeContext& node, const std::string& format, char axis) {
  const size_t at = format.find(axis);
  if (at == std::string::npos) node.invalid("\"" + format + "\" is no other order of the same axes");
  return static_cast<int64_t>(at);
}

}  // namespace

// Axes, or numbers of each axis, of one order of the axes in another one.
void convert_data_format(NodeContext& node) {
  const std::string from = node.text("src_format", "NHWC"), to = node.text("dst_format", "NCHW");
  const V x = node.input(0);
  const ir::SymShape given = node.known_ints(0, "x"), shape = node.shape(x);
  const auto rank = static_cast<int64_t>(from.size());
  ir::SymShape made;
  if (node.op() == "DataFormatDimMap") {
    for (const int64_t axis : std::vector<int64_t>(given))
      made.push_back(place_in_format(node, to, from[static_cast<size_t>(node.normalize_axis(axis, rank))]));
  } else {
    std::string source = from, wanted = to;
    // Numbers of the axes of space alone.
    if (shape.empty()) node.invalid("x has no axis");
    if (!same(shape[0], rank))
      for (std::string* order : {&source, &wanted})
        std::erase_if(*order, [](char c) { return c == 'N' || c == 'C'; });
    const size_t each = shape.size() == 2 ? 2 : 1;
    if (given.size() != wanted.size() * each) node.invalid("x has shape " + to_string(shape));
    for (const char axis : wanted)
      for (size_t i = 0; i < each; ++i)
        made.push_back(given[static_cast<size_t>(place_in_format(node, source, axis)) * each + i]);
  }
  Compose c(node);
  node.set_output(0, c.cast(c.reshape(node.extents(made), shape), node.dtype(x)));
}

namespace {

/// `count` numbers from `start` on by `step`.
V numbers(NodeContext& node, DType dtype, double start, double step, double count) {
  Compose c(node);
  if (count > static_cast<double>(build::kMaxListed))
    node.unsupported("limit", "so long a range is not implemented");
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
    values.push_back(start + static_cast<double>(i) * step);
  return c.doubles(dtype, values, {static_cast<int64_t>(values.size())});
}

/// The code of a real number that is known, be it as an expression of free dims (extent_functions.h).
std::optional<ir::SymInt> real_code(NodeContext& node, size_t index) {
  const std::optional<ir::KnownValue> known = build::following_value(node, node.input(index));
  if (!known || num_elements(known->shape()) != 1) return std::nullopt;
  if (known->is_symbolic()) return known->elements()[0];
  const std::optional<int64_t> code = float_code(static_cast<float>((*known)->element_as_double(0)));
  return code ? std::optional<ir::SymInt>(*code) : std::nullopt;
}

/// A range of float32 whose ends depend on free dims; nothing for another one.
std::optional<V> free_real_range(NodeContext& node) {
  if (node.dtype(node.input(0)) != DType::kFloat32) return std::nullopt;
  std::vector<ir::SymInt> codes;
  for (const size_t index : {0, 1, 2}) {
    const std::optional<ir::SymInt> code = real_code(node, index);
    if (!code) return std::nullopt;
    codes.push_back(*code);
  }
  const bool is_free = !codes[0].is_constant() || !codes[1].is_constant();
  if (!is_free || !codes[2].is_constant() || codes[2].hint() == 0) return std::nullopt;
  const ir::SymInt count = max(ir::call("steps_of_f32", codes), 0);
  if (!ir::demand(ir::Relation::kLessEqual, count, build::kMaxListed))
    node.unsupported("limit", "so long a range is not implemented");
  Compose c(node);
  const V steps = c.mul(c.cast(c.iota(count), DType::kFloat32), c.reshape(node.input(2), {1}));
  return c.add(steps, c.reshape(node.input(0), {1}));
}

}  // namespace

// Of known numbers; from 0 by 1 also to an extent.
void convert_range(NodeContext& node) {
  Compose c(node);
  const DType dtype = node.dtype(node.input(0));
  if (!is_float(dtype)) {
    const ir::SymInt step = node.known_int(2, "delta");
    const ir::SymInt start = node.number_at(0, "start"), limit = node.number_at(1, "limit");
    const bool is_symbolic = !start.is_constant() || !limit.is_constant() || !step.is_constant();
    if (is_symbolic && step.is_constant() && !same(step, 0)) {
      const int64_t by = step.hint();
      // As many as there are whole steps begun before the limit.
      const ir::SymInt count =
          by > 0 ? floordiv(limit - start + (by - 1), by) : floordiv(start - limit - by - 1, -by);
      V places = c.iota(max(count, 0));
      if (by != 1) places = c.times(places, static_cast<double>(by));
      return node.set_output(0, c.cast(same(start, 0) ? places : c.add(places, c.dims({start}, {})), dtype));
    }
  }
  if (const std::optional<V> range = free_real_range(node)) return node.set_output(0, *range);
  const double start = node.known_real(0, "start"), limit = node.known_real(1, "limit"),
               step = node.known_real(2, "delta");
  if (step == 0 || !std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(step))
    node.invalid("a range from " + std::to_string(start) + " to " + std::to_string(limit) + " by " +
                 std::to_string(step));
  node.set_output(0, numbers(node, dtype, start, step, std::max(0.0, std::ceil((limit - start) / step))));
}

// Between ends that a run may work out; how many numbers is known.
void convert_lin_space(NodeContext& node) {
  Compose c(node);
  const V first = node.input(0), last = node.input(1);
  const ir::SymInt number = node.known_int(2, "num");
  if (!number.is_constant() || !node.graph().value(first).constant || !node.graph().value(last).constant) {
    if (!ir::demand(ir::Relation::kLessEqual, 1, number)) node.invalid("num is " + to_string(number));
    const V steps = c.cast(c.iota(number), node.dtype(first));
    const V step = c.div(c.sub(last, first), c.extent(first, max(number - 1, 1)));
    return node.set_output(0, c.add(c.mul(steps, step), first));
  }
  const double start = node.known_real(0, "start"), stop = node.known_real(1, "stop");
  const int64_t count = number.hint();
  if (count < 1) node.invalid("num is " + std::to_string(count));
  const double step = count == 1 ? 0 : (stop - start) / static_cast<double>(count - 1);
  node.set_output(0, numbers(node, node.dtype(node.input(0)), start, step, static_cast<double>(count)));
}

// Operands: indices, depth, on, off.
void convert_one_hot(NodeContext& node) {
  Compose c(node);
  const V indices = node.input(0), on = node.input(2), off = node.input(3);
  const ir::SymInt depth = build::only_integer(node, node.extents_at(1, "depth"), "depth");
  int64_t axis = node.integer("axis", -1);
  axis = axis == -1 ? node.rank(indices) : node.normalize_axis(axis, node.rank(indices) + 1);
  const V values = c.concat({c.reshape(off, {1}), c.reshape(on, {1})}, 0);
  if (!depth.is_constant()) {
    // A place of each is compared with all that there are.
    ir::SymShape along(node.shape(indices));
    along.insert(along.begin() + axis, 1);
    const V place = c.positions(depth, static_cast<size_t>(axis), along.size());
    const V is_it = c.binary("equal", c.cast(c.reshape(indices, along), DType::kInt64), place);
    return node.set_output(0, c.where(is_it, c.reshape(on, {}), c.reshape(off, {})));
  }
  // A negative index is no place.
  const V inside = c.where(c.binary("less", indices, c.number(indices, 0)),
                           c.number(indices, static_cast<double>(depth.hint())), indices);
  node.set_output(0, node.add("one_hot", {inside, values}, {{"axis", axis}, {"depth", depth.hint()}}));
}

void convert_broadcast_args(NodeContext& node) {
  Compose c(node);
  const ir::SymShape shape = ir::broadcast_shapes(node.known_ints(0, "shape"), node.known_ints(1, "shape"));
  node.set_output(0, c.cast(node.extents(shape), node.dtype(node.input(0))));
}

void convert_invert_permutation(NodeContext& node) {
  const ir::Ints perm = node.known_ints(0, "x");
  std::vector<double> inverse(perm.size(), -1);
  for (size_t i = 0; i < perm.size(); ++i) {
    const auto at = static_cast<size_t>(perm[i]);
    if (at >= perm.size() || inverse[at] >= 0) node.invalid("x is no permutation");
    inverse[at] = static_cast<double>(i);
  }
  node.set_output(
      0, Compose(node).doubles(node.dtype(node.input(0)), inverse, {static_cast<int64_t>(perm.size())}));
}

// Batch dims of the old form are an attribute, the axis of the new one is operand 2.
void convert_gather(NodeContext& node) {
  const V x = node.input(0), indices = node.input(1);
  int64_t axis = 0, batch = 0;
  if (node.op() == "GatherV2") {
    axis = node.normalize_axis(node.known_int(2, "axis"), node.rank(x));
    batch = node.integer("batch_dims", 0);
  }
  if (batch < 0) batch += node.rank(indices);
  node.set_output(0, build::batched_gather(node, x, indices, axis, batch));
}

void convert_gather_nd(NodeContext& node) {
  node.set_output(0, build::gather_nd(node, node.input(0), node.input(1)));
}

// Operands: indices, updates, shape. Updates of one place are added.
void convert_scatter_nd(NodeContext& node) {
  const V updates = node.input(1);
  const V zeros = Compose(node).filled(node.dtype(updates), node.extents_at(2, "shape"), 0);
  node.set_output(0, build::scatter_nd(node, zeros, node.input(0), updates, "add"));
}

// Operands: tensor, indices, updates.
void convert_tensor_scatter(NodeContext& node) {
  const std::string_view op = node.op();
  V updates = node.input(2);
  const char* reduction = op == "TensorScatterUpdate" ? "none"
                          : op == "TensorScatterMax"  ? "max"
                          : op == "TensorScatterMin"  ? "min"
                                                      : "add";
  if (op == "TensorScatterSub") updates = Compose(node).unary("neg", updates);
  node.set_output(0, build::scatter_nd(node, node.input(0), node.input(1), updates, reduction));
}

// Operands: x, which of its rows, what is put there, added or taken away.
void convert_row_update(NodeContext& node) {
  Compose c(node);
  const V places = c.cast(node.input(1), DType::kInt64);
  if (node.rank(places) > 1) node.invalid("rows of shape " + to_string(node.shape(places)));
  const V row = c.reshape(places, {num_elements(node.shape(places))});
  V rows = node.input(2);
  if (node.rank(places) == 0) rows = c.unsqueeze(rows, 0);
  if (node.op() == "InplaceSub") rows = c.unary("neg", rows);
  const char* reduction = node.op() == "InplaceUpdate" ? "none" : "add";
  node.set_output(0, build::scattered(node, node.input(0), row, rows, reduction));
}

void convert_reverse_sequence(NodeContext& node) {
  const int64_t time = node.integer("seq_dim"), batch = node.integer("batch_dim", 0);
  node.set_output(0, build::reversed_sequences(node, node.input(0), node.input(1), time, batch));
}

// Operands: rows above and below the diagonal that stay; all where negative.
void convert_matrix_band_part(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 2) node.invalid("the input has rank " + std::to_string(shape.size()));
  const int64_t lower = node.known_int(1, "num_lower"), upper = node.known_int(2, "num_upper");
  const size_t rank = shape.size();
  const V row = c.positions(shape[rank - 2], rank - 2, rank),
          column = c.positions(shape[rank - 1], rank - 1, rank);
  V result = x;
  const V zero = c.number(x, 0);
  if (lower >= 0)
    result = c.where(c.binary("less_equal", c.sub(row, column), c.ints({lower}, {})), result, zero);
  if (upper >= 0)
    result = c.where(c.binary("less_equal", c.sub(column, row), c.ints({upper}, {})), result, zero);
  node.set_output(0, result);
}

}  // namespace tensormill::frontend::tensorflow
