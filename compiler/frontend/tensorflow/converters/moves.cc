// Operators that move elements.
#include <algorithm>
#include <numeric>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/maps/space.h"
#include "compiler/build/moves/moves.h"
#include "compiler/build/numbers/arithmetic.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

void convert_reshape(NodeContext& node) {
  const V x = node.input(0);
  const ir::SymShape to = build::settled_shape(node, node.shape(x), node.extents_at(1, "shape"));
  node.set_output(0, Compose(node).reshape(x, to));
}

void convert_squeeze(NodeContext& node) {
  const ir::Ints dims = node.ints("squeeze_dims", std::vector<int64_t>());
  const V x = node.input(0);
  std::optional<std::vector<int64_t>> dropped;
  if (!dims.empty()) dropped.emplace();
  for (const int64_t dim : dims) dropped->push_back(node.normalize_axis(dim, node.rank(x)));
  node.set_output(0, Compose(node).reshape(x, build::squeezed_shape(node, node.shape(x), dropped)));
}

void convert_expand_dims(NodeContext& node) {
  const V x = node.input(0);
  node.set_output(
      0, Compose(node).unsqueeze(x, node.normalize_axis(node.known_int(1, "dim"), node.rank(x) + 1)));
}

void convert_transpose(NodeContext& node) {
  ir::Ints perm = node.known_ints(1, "perm");
  const V x = node.input(0);
  for (int64_t& axis : perm) axis = node.normalize_axis(axis, node.rank(x));
  std::vector<int64_t> sorted = perm, all(static_cast<size_t>(node.rank(x)));
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) node.invalid("perm " + to_string(perm) + " is no permutation");
  // Channels that are put first, where they are computed, are not moved at all.
  std::vector<int64_t> first(all);
  if (first.size() > 2) std::rotate(first.begin() + 1, first.end() - 1, first.end());
  if (node.is_map(x) && perm == first) return node.set_output(0, node.first(x));
  node.set_output(0, Compose(node).transpose(x, perm));
}

// The axis is the last operand, of the old form the first one.
void convert_concat(NodeContext& node) {
  if (node.num_inputs() < 2) node.invalid("it has no operands");
  const bool is_old = node.op() == "Concat";
  const size_t last = node.num_inputs() - 1;
  const int64_t axis = node.known_int(is_old ? 0 : last, "axis");
  const ir::CheckedList<V> parts = is_old ? node.inputs_from(1) : node.inputs_from(0, last);
  node.set_output(0, build::concatenated(node, node.maps(), parts, axis));
}

// Along the first axis.
void convert_parallel_concat(NodeContext& node) {
  if (node.num_inputs() == 0) node.invalid("it has no operands");
  node.set_output(0, Compose(node).concat(node.inputs_from(0), 0));
}

void convert_pack(NodeContext& node) {
  const int64_t given = node.integer("axis", 0);
  Compose c(node);
  ir::CheckedList<V> parts = node.inputs_from(0);
  if (parts.empty()) node.invalid("it has no operands");
  const int64_t axis = node.normalize_axis(given, node.rank(parts[0]) + 1);
  for (V& part : parts) part = c.unsqueeze(part, axis);
  node.set_output(0, c.concat(parts, axis));
}

void convert_unpack(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const int64_t axis = node.normalize_axis(node.integer("axis", 0), node.rank(x)),
                count = node.integer("num");
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  if (count < 0 || count > (1 << 16) || !ir::demand(ir::Relation::kEqual, extent, count))
    node.invalid("an axis of " + to_string(extent) + " in " + std::to_string(count) + " outputs");
  for (int64_t i = 0; i < count; ++i)
    node.set_output(static_cast<size_t>(i), c.squeeze(c.slice(x, axis, i, 1), axis));
}

// The axis is operand 0.
void convert_split(NodeContext& node) {
  const V x = node.input(1);
  const int64_t axis = node.normalize_axis(node.known_int(0, "axis"), node.rank(x));
  const int64_t count = node.integer("num_split");
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  if (count < 1 || count > (1 << 16) || !ir::demand_divisible(extent, count))
    node.invalid("an axis of " + to_string(extent) + " in " + std::to_string(count) + " parts");
  const ir::SymShape sizes(static_cast<size_t>(count), floordiv(extent, count));
  const std::vector<V> parts = build::split(node, node.maps(), x, axis, sizes);
  for (size_t i = 0; i < parts.size(); ++i) node.set_output(i, parts[i]);
}

// One size may be -1: what is left. The axis is operand 2.
void convert_split_v(NodeContext& node) {
  const V x = node.input(0);
  const int64_t axis = node.normalize_axis(node.known_int(2, "axis"), node.rank(x));
  ir::SymShape sizes = node.known_ints(1, "size_splits");
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  if (static_cast<int64_t>(sizes.size()) != node.integer("num_split"))
    node.invalid("it has another number of sizes than of outputs");
  ir::SymInt total = 0;
  for (const ir::SymInt& size : sizes) total += same(size, -1) ? ir::SymInt(0) : size;
  for (ir::SymInt& size : sizes) {
    if (same(size, -1)) size = extent - total;
  }
  const std::vector<V> parts = build::split(node, node.maps(), x, axis, sizes);
  for (size_t i = 0; i < parts.size(); ++i) node.set_output(i, parts[i]);
}

namespace {

/// Numbers that a run works out, i64 [n], as symbols from 0 to those of `highs`; those that nothing reads are
/// 0.
ir::SymShape bound_numbers(NodeContext& node, V numbers, const ir::SymShape& highs, int64_t unread = 0) {
  Compose c(node);
  ir::SymShape bound;
  for (size_t i = 0; i < highs.size(); ++i) {
    if ((unread >> i & 1) != 0 || same(highs[i], 0)) {
      bound.push_back(0);
      continue;
    }
    const V one = c.slice(numbers, 0, static_cast<int64_t>(i), 1);
    bound.push_back(build::bind_run_numbers(node, one, 0, highs[i])[0]);
  }
  return bound;
}

/// The numbers of an operand that a run works out, one for each of `count`: i64 [count].
V numbers_of(NodeContext& node, size_t operand, size_t count) {
  Compose c(node);
  const auto extent = static_cast<int64_t>(count);
  const V given = node.input(operand);
  if (is_float(node.dtype(given)) ||
      !ir::demand(ir::Relation::kEqual, num_elements(node.shape(given)), extent))
    node.invalid("an operand of shape " + to_string(node.shape(given)) + " for " + std::to_string(count) +
                 " places");
  return c.cast(c.reshape(given, {extent}), DType::kInt64);
}

/// Ends of a strided slice: where a run works them out, as places within the axes, from the front. `extents`:
/// of the axis of each; of those in `single` one element is taken, which has to be there; those in `unread`
/// are 0.
ir::SymShape ends_of(NodeContext& node, size_t operand, const char* what, const ir::SymShape& extents,
                     int64_t single, int64_t unread) {
  if (node.is_known(operand)) return node.known_ints(operand, what);
  Compose c(node);
  const V given = numbers_of(node, operand, extents.size());
  const auto count = static_cast<int64_t>(extents.size());
  ir::SymShape highs = extents;
  std::vector<int64_t> ones;
  for (size_t i = 0; i < highs.size(); ++i) {
    ones.push_back((single >> i) & 1);
    if (ones.back() != 0) highs[i] = highs[i] - 1;
  }
  const V zero = c.number(given, 0), high = c.dims(highs, {count});
  V place = c.where(c.binary("less", given, zero), c.add(given, c.dims(extents, {count})), given);
  const V within = c.binary("max", c.binary("min", place, high), zero);
  const V is_free = c.binary("equal", c.ints(ones, {count}), zero);
  const V fits = c.binary("or", is_free, c.binary("equal", within, place));
  const V checked = build::required(node, within, fits, "index {} outside of an axis of {}",
                                    {given, c.dims(extents, {count})});
  return bound_numbers(node, checked, highs, unread);
}

/// Of each place of a strided slice the extent of its axis, or 0 where it has none.
ir::SymShape extents_of(NodeContext& node, size_t count, int64_t ellipsis, int64_t added) {
  const ir::SymShape shape = node.shape(node.input(0));
  size_t own = 0;
  for (size_t i = 0; i < count; ++i) own += ((ellipsis | added) >> i & 1) == 0 ? 1 : 0;
  ir::SymShape extents;
  size_t axis = 0;
  for (size_t i = 0; i < count; ++i) {
    if ((ellipsis >> i & 1) != 0) {
      extents.push_back(0);
      axis += shape.size() - std::min(own, shape.size());
    } else if ((added >> i & 1) != 0) {
      extents.push_back(0);
    } else {
      if (axis >= shape.size()) node.invalid("more places than " + to_string(shape) + " has axes");
      extents.push_back(shape[axis++]);
    }
  }
  return extents;
}

}  // namespace

// Where a run works out where parts begin, they have to lie within the axes, as TensorFlow has it.
void convert_slice(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const ir::SymShape shape = node.shape(x);
  const auto rank = static_cast<int64_t>(shape.size());
  if (node.is_known(1) && node.is_known(2))
    return node.set_output(
        0, build::sized_slice(node, node.maps(), x, node.known_ints(1, "begin"), node.known_ints(2, "size")));
  const auto numbers = [&](size_t operand, const char* what) {
    return node.is_known(operand) ? c.dims(node.known_ints(operand, what), {rank})
                                  : numbers_of(node, operand, shape.size());
  };
  const V begins = numbers(1, "begin"), given = numbers(2, "size"), zero = c.number(begins, 0);
  const V left = c.sub(c.dims(shape, {rank}), begins);
  const V sizes = c.where(c.binary("less", given, zero), left, given);
  const V fits =
      c.binary("and", c.binary("greater_equal", begins, zero), c.binary("less_equal", sizes, left));
  const char* what = "a part that does not lie within its axis";
  ir::SymShape highs = shape, known = shape;
  if (node.is_known(2)) {
    known = node.known_ints(2, "size");
    for (size_t i = 0; i < shape.size(); ++i)
      if (!known[i].is_constant() || known[i].hint() >= 0) highs[i] = shape[i] - known[i];
  }
  const ir::SymShape from = node.is_known(1)
                                ? node.known_ints(1, "begin")
                                : bound_numbers(node, build::required(node, begins, fits, what), highs);
  const ir::SymShape count =
      node.is_known(2) ? known : bound_numbers(node, build::required(node, sizes, fits, what), shape);
  node.set_output(0, build::sized_slice(node, node.maps(), x, from, count));
}

void convert_strided_slice(NodeContext& node) {
  build::StridedSliceSpec spec{{},
                               {},
                               node.known_ints(3, "strides"),
                               node.integer("begin_mask", 0),
                               node.integer("end_mask", 0),
                               node.integer("ellipsis_mask", 0),
                               node.integer("new_axis_mask", 0),
                               node.integer("shrink_axis_mask", 0),
                               false};
  const size_t count = spec.strides.size();
  const bool is_known = node.is_known(1) && node.is_known(2);
  const auto goes_back = [](const ir::SymInt& stride) { return !stride.is_constant() || stride.hint() < 1; };
  if (!is_known && std::any_of(spec.strides.begin(), spec.strides.end(), goes_back))
    node.unsupported("strides", "numbers of a run for parts that go back are not implemented");
  const ir::SymShape extents =
      is_known ? ir::SymShape{} : extents_of(node, count, spec.ellipsis_mask, spec.new_axis_mask);
  const int64_t whole = spec.ellipsis_mask | spec.new_axis_mask;
  spec.begin = ends_of(node, 1, "begin", extents, spec.shrink_axis_mask & ~spec.begin_mask & ~whole,
                       spec.begin_mask | whole);
  // Of single elements the end says nothing.
  spec.end = ends_of(node, 2, "end", extents, 0, spec.end_mask | whole | spec.shrink_axis_mask);
  node.set_output(0, build::strided_slice(node, node.maps(), node.input(0), spec));
}

// Operands: a shape, begin, end and strides of a part of it, and the part, which stands among zeros.
void convert_strided_slice_grad(NodeContext& node) {
  Compose c(node);
  const ir::SymShape shape = node.extents_at(0, "shape");
  const ir::SymInt total = num_elements(shape);
  NodeContext part(node, {{c.iota(total, shape), {}}, node.item(1), node.item(2), node.item(3)});
  convert_strided_slice(part);
  const V places = std::get<V>(part.outputs().at(0).value), given = node.input(4);
  const ir::SymInt count = num_elements(node.shape(places));
  if (!ir::demand_equal(node.shape(places), node.shape(given)))
    node.invalid("a part of shape " + to_string(node.shape(given)) + " for one of " +
                 to_string(node.shape(places)));
  const V zeros = c.filled(node.dtype(given), {total}, 0);
  const V flat = build::scattered(node, zeros, c.reshape(places, {count}), c.reshape(given, {count}), "none");
  node.set_output(0, c.reshape(flat, shape));
}

void convert_pad(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const ir::SymShape paddings = node.extents_at(1, "paddings");
  const bool has_value = node.op() == "PadV2";
  if (!has_value || node.graph().value(node.input(2)).tensor() != nullptr) {
    const double value = has_value ? node.known_real(2, "constant_values") : 0;
    return node.set_output(0, build::padded(node, node.maps(), x, paddings, value));
  }
  // A number that a run works out stands where a pad of nothing is.
  const V inside = build::padded(node, node.maps(), c.filled(DType::kUInt8, node.shape(x), 1), paddings, 0);
  const V zeros = build::padded(node, node.maps(), x, paddings, 0);
  node.set_output(0, c.where(c.cast(inside, DType::kBool), zeros, c.reshape(node.input(2), {})));
}

void convert_mirror_pad(NodeContext& node) {
  const std::string mode = node.text("mode");
  if (mode != "REFLECT" && mode != "SYMMETRIC") node.invalid("mode is \"" + mode + "\"");
  const ir::SymShape paddings = node.known_ints(1, "paddings");
  node.set_output(0, build::mirror_padded(node, node.input(0), paddings, mode == "SYMMETRIC"));
}

// Of the old form a bool for each axis says whether it is one.
void convert_reverse(NodeContext& node) {
  std::vector<int64_t> axes;
  if (node.op() == "Reverse") {
    const ::tensormill::Tensor* dims = node.graph().value(node.input(1)).tensor();
    if (dims == nullptr) node.unsupported("dims", "it is worked out by a run");
    for (int64_t i = 0; i < dims->num_elements(); ++i)
      if (dims->element_as_double(i) != 0) axes.push_back(i);
  } else {
    axes = node.known_ints(1, "axis");
  }
  node.set_output(0, build::reversed(node, node.maps(), node.input(0), axes));
}

void convert_tile(NodeContext& node) {
  node.set_output(0, node.add("tile", {node.input(0)}, {{"repeats", node.extents_at(1, "multiples")}}));
}

void convert_broadcast_to(NodeContext& node) {
  node.set_output(0, Compose(node).expand(node.input(0), node.extents_at(1, "shape")));
}

namespace {

/// Operand 1, or, of the old forms, one block for both axes of a map.
std::vector<int64_t> blocks_of(NodeContext& node) {
  const bool is_old = node.op() == "SpaceToBatch" || node.op() == "BatchToSpace";
  if (!is_old) return node.known_ints(1, "block_shape");
  const int64_t block = node.integer("block_size");
  return {block, block};
}

size_t margins_of(const NodeContext& node) { return node.op().ends_with("ND") ? 2 : 1; }

/// x with its channels last, `convert` it, and back.
template <typename Convert>
V with_channels_last(NodeContext& node, V x, const Convert& convert) {
  if (!node.is_channels_first()) return convert(x);
  Compose c(node);
  return c.transpose(convert(c.transpose(x, {0, 2, 3, 1})), {0, 3, 1, 2});
}

}  // namespace

void convert_space_to_depth(NodeContext& node) {
  const int64_t block = node.integer("block_size");
  node.set_output(
      0, with_channels_last(node, node.input(0), [&](V x) { return build::space_to_depth(node, x, block); }));
}

void convert_depth_to_space(NodeContext& node) {
  const int64_t block = node.integer("block_size");
  node.set_output(
      0, with_channels_last(node, node.input(0), [&](V x) { return build::depth_to_space(node, x, block); }));
}

void convert_space_to_batch(NodeContext& node) {
  const ir::SymShape paddings = node.known_ints(margins_of(node), "paddings");
  node.set_output(0, build::space_to_batch(node, node.input(0), blocks_of(node), paddings, 0));
}

void convert_batch_to_space(NodeContext& node) {
  const ir::SymShape crops = node.known_ints(margins_of(node), "crops");
  node.set_output(0, build::batch_to_space(node, node.input(0), blocks_of(node), crops));
}

namespace {

/// By as many elements as a run says: each comes from a place that is worked out.
V rolled_by_run(NodeContext& node, V x, const std::vector<int64_t>& axes) {
  Compose c(node);
  const auto count = static_cast<int64_t>(axes.size());
  const V shifts = c.reshape(c.cast(node.input(1), DType::kInt64), {count});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t axis = node.normalize_axis(axes[static_cast<size_t>(i)], node.rank(x));
    const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
    if (same(extent, 0)) continue;
    const V from = c.sub(c.iota(extent), c.slice(shifts, 0, i, 1));
    x = c.gather(x, build::floor_mod(node, node.maps(), from, c.dims({extent}, {})), axis);
  }
  return x;
}

}  // namespace

// Each axis is turned by as many elements as its shift says, what leaves at the end comes in at the begin.
void convert_roll(NodeContext& node) {
  Compose c(node);
  V x = node.input(0);
  const ir::Ints axes = node.known_ints(2, "axis");
  if (!node.is_known(1)) return node.set_output(0, rolled_by_run(node, x, axes));
  const ir::Ints shifts = node.known_ints(1, "shift");
  if (shifts.size() != axes.size()) node.invalid("shift and axis have different lengths");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = node.normalize_axis(axes[i], node.rank(x));
    const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
    if (same(extent, 0)) continue;
    const ir::SymInt behind = floormod(ir::SymInt(shifts[i]), extent);
    if (same(behind, 0)) continue;
    x = c.concat({c.slice(x, axis, extent - behind, behind), c.slice(x, axis, 0, extent - behind)}, axis);
  }
  node.set_output(0, x);
}

}  // namespace tensormill::frontend::tensorflow
