// Operators that exchange a part of a tensor, or its order.
#include <algorithm>
#include <numbers>

#include "compiler/frontend/tflite/converters/moved.h"

namespace tensormill::frontend::tflite {

// Operand, update, start of each axis: a start that leaves no room is moved.
void convert_dynamic_update_slice(NodeContext& node) {
  const V starts = node.stored(2);
  set_moved(node, 0, [&](V x) {
    Compose c(node);
    V update = node.has_output_scale(1) ? node.stored(1) : node.real(1);
    const ir::SymShape shape = node.shape(x), own = node.shape(update);
    if (own.size() != shape.size() || node.shape(starts).size() != 1)
      node.invalid("an update of shape " + to_string(own) + " for " + to_string(shape));
    V inside = ir::kAbsent;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!ir::demand(ir::Relation::kLessEqual, own[d], shape[d]))
        node.invalid("an update of shape " + to_string(own) + " for " + to_string(shape));
      if (same(own[d], shape[d])) continue;
      const auto axis = static_cast<int64_t>(d);
      const V given = c.cast(c.slice(starts, 0, axis, 1), DType::kInt64);
      const V start =
          c.binary("min", c.binary("max", given, c.ints({0}, {1})), c.dims({shape[d] - own[d]}, {1}));
      const V places = c.sub(c.iota(shape[d]), start);
      const V last = c.dims({own[d] - 1}, {1});
      update = c.gather(update, c.binary("min", c.binary("max", places, c.ints({0}, {1})), last), axis);
      ir::SymShape along(shape.size(), 1);
      along[d] = shape[d];
      const V is_there = c.binary("and", c.binary("less_equal", c.ints({0}, {1}), places),
                                  c.binary("less_equal", places, last));
      const V mask = c.reshape(is_there, along);
      inside = inside == ir::kAbsent ? mask : c.binary("and", inside, mask);
    }
    return inside == ir::kAbsent ? update : c.where(inside, update, x);
  });
}

// The first elements of each row of the batch are turned round, as many as operand 1 says.
void convert_reverse_sequence(NodeContext& node) {
  const auto options = node.options<ReverseSequenceOptions>();
  set_moved(node, 0, [&](V x) {
    Compose c(node);
    const ir::SymShape shape = node.shape(x);
    const int64_t time = node.normalize_axis(options.seq_dim, node.rank(x));
    const int64_t batch = node.normalize_axis(options.batch_dim, node.rank(x));
    if (time == batch) node.invalid("seq_dim and batch_dim are the same");
    const auto at = static_cast<size_t>(time), rows = static_cast<size_t>(batch);
    ir::SymShape along(shape.size(), 1);
    along[rows] = shape[rows];
    const V lengths = c.reshape(c.cast(node.stored(1), DType::kInt64), along);
    const V place = c.positions(shape[at], at, shape.size());
    const V turned = c.sub(c.minus(lengths, 1), place);
    const V chosen = c.where(c.binary("less", place, lengths), turned, place);
    return c.gather_elements(x, c.expand(chosen, shape), time);
  });
}

// The angle of (x, y), of all four quadrants.
void convert_atan2(NodeContext& node) {
  Compose c(node);
  const V y = node.real(0), x = node.real(1), zero = c.number(x, 0);
  constexpr double kPi = std::numbers::pi;
  const auto has = [&](const char* op, V value) { return c.binary(op, value, zero); };
  const V angle = c.unary("atan", c.div(y, x));
  const V half = c.where(has("less", y), c.number(x, -kPi), c.number(x, kPi));
  const V left = c.add(angle, half);
  const V upright =
      c.where(has("less", y), c.number(x, -kPi / 2), c.where(has("greater", y), c.number(x, kPi / 2), zero));
  node.set_real(0, c.where(has("greater", x), angle, c.where(has("less", x), left, upright)));
}

// One step behind a state that is zero: of the memory only the newest column counts.
void convert_svdf(NodeContext& node) {
  const auto options = node.options<SVDFOptions>();
  if (node.input_tensor(0).type != TensorType::kFloat32)
    node.unsupported("operand 0", "integers are not implemented");
  if (node.has_input(4) && !node.input_tensor(4).is_variable)
    node.unsupported("operand 4", "a state that is no variable is not implemented");
  Compose c(node);
  const V x = node.real(0), features = node.real(1), times = node.real(2);
  const ir::SymShape filters = node.shape(times);
  if (options.rank < 1 || filters.size() != 2 || !ir::demand_divisible(filters[0], options.rank))
    node.invalid("rank " + std::to_string(options.rank) + " of filters " + to_string(filters));
  const V newest = c.reshape(c.slice(times, 1, filters[1] - 1, 1), {filters[0]});
  const V sums = c.mul(c.matmul(x, features, true), newest);
  V y = c.reduce("reduce_sum",
                 c.reshape(sums, {node.shape(x)[0], floordiv(filters[0], options.rank), options.rank}), {2},
                 false);
  if (node.has_input(3)) y = c.add(y, node.real(3));
  node.set_real(0, y, options.fused_activation_function);
}

}  // namespace tensormill::frontend::tflite
