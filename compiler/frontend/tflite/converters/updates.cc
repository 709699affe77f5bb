// Operators that exchange a part of a tensor, or its order.

#include "compiler/build/moves/places.h"
#include "compiler/build/numbers/arithmetic.h"
#include "compiler/build/numbers/quantize.h"
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
    return build::reversed_sequences(node, x, node.stored(1), options.seq_dim, options.batch_dim);
  });
}

void convert_atan2(NodeContext& node) { node.set_real(0, build::atan2(node, node.real(0), node.real(1))); }

namespace {

/// What an integer operator's memory keeps of real numbers: those of the state's own integers.
V as_state(NodeContext& node, V x) {
  const Quantization& state = node.input_tensor(4).quantization;
  if (node.input_tensor(4).type != TensorType::kInt16 || state.scale.size() != 1 ||
      state.details.index() != 0 || (!state.zero_point.empty() && state.zero_point.front() != 0))
    node.unsupported("operand 4", "a state that is not int16 with one scale around 0 is not implemented");
  const V scale = node.scalar_like(x, static_cast<double>(state.scale[0]));
  return build::dequantize(node, build::quantize(node, x, scale, ir::kAbsent, DType::kInt16), scale,
                           ir::kAbsent);
}

}  // namespace

// One step behind a state that is zero: of the memory only the newest column counts.
void convert_svdf(NodeContext& node) {
  const auto options = node.options<SVDFOptions>();
  const bool is_integer = node.input_tensor(0).type == TensorType::kInt8;
  if (!is_integer && node.input_tensor(0).type != TensorType::kFloat32)
    node.unsupported("operand 0", "elements of type " + std::string(type_name(node.input_tensor(0).type)));
  if (node.has_input(4) && !node.input_tensor(4).is_variable)
    node.unsupported("operand 4", "a state that is no variable is not implemented");
  Compose c(node);
  const V x = node.real(0), features = node.real(1), times = node.real(2);
  const ir::SymShape filters = node.shape(times);
  if (options.rank < 1 || filters.size() != 2 || !ir::demand_divisible(filters[0], options.rank))
    node.invalid("rank " + std::to_string(options.rank) + " of filters " + to_string(filters));
  const V newest = c.reshape(c.slice(times, 1, filters[1] - 1, 1), {filters[0]});
  V products = c.matmul(x, features, true);
  if (is_integer) products = as_state(node, products);
  const V sums = c.mul(products, newest);
  V y = c.reduce("reduce_sum",
                 c.reshape(sums, {node.shape(x)[0], floordiv(filters[0], options.rank), options.rank}), {2},
                 false);
  if (node.has_input(3)) y = c.add(y, node.real(3));
  // The kernel of integers asks for RELU, and clamps to its type alone.
  node.set_real(0, y, is_integer ? Activation::kNone : options.fused_activation_function);
}

}  // namespace tensormill::frontend::tflite
