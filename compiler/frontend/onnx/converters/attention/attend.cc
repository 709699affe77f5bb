#include "compiler/frontend/onnx/converters/attention/attend.h"

#include "compiler/frontend/onnx/converters/algebra/roots.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

}  // namespace

V split_heads(NodeContext& context, V x, int64_t heads) {
  Compose c(context);
  const ir::SymShape shape = c.shape(x);
  if (shape.size() != 3 || heads < 1 || !demand_divisible(shape[2], heads))
    context.invalid("an operand of shape " + to_string(shape) + " does not divide into " +
                    std::to_string(heads) + " heads");
  return c.transpose(c.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

V merge_heads(NodeContext& context, V x) {
  Compose c(context);
  const ir::SymShape shape = c.shape(x);
  return c.reshape(c.transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], context.product(shape[1], shape[3])});
}

V repeat_heads(NodeContext& context, V x, const ir::SymInt& heads) {
  Compose c(context);
  const ir::SymShape shape = c.shape(x);
  if (is_proven(ir::Relation::kEqual, shape[1], heads)) return x;
  if (!demand(ir::Relation::kLessEqual, 1, shape[1]) || !demand_divisible(heads, shape[1]))
    context.invalid(to_string(heads) + " heads of queries do not divide over " + std::to_string(shape[1]) +
                    " of keys");
  const ir::SymInt each = floordiv(heads, shape[1]);
  const V wide = c.expand(c.unsqueeze(x, 2), {shape[0], shape[1], each, shape[2], shape[3]});
  return c.reshape(wide, {shape[0], heads, shape[2], shape[3]});
}

V scaled_products(NodeContext& context, V q, V k, double scale) {
  Compose c(context);
  const V factor = scale != 0 ? c.number(q, scale) : inverse_root(context, q, c.shape(q)[3]);
  return c.mul(c.matmul(q, k, true), factor);
}

V appended(NodeContext& context, V past, V present) {
  return past == ir::kAbsent ? present : Compose(context).concat({past, present}, 2);
}

V addend_of(Compose& c, V allowed, V like) {
  return c.where(allowed, c.number(like, 0), c.number(like, kMinusInfinity));
}

V added(Compose& c, V a, V b) { return a == ir::kAbsent ? b : b == ir::kAbsent ? a : c.add(a, b); }

V causal_addend(Compose& c, const ir::SymInt& queries, const ir::SymInt& keys, V before, V like) {
  const V last = c.add(c.positions(queries, 2, 4), before);
  return addend_of(c, c.binary("less_equal", c.positions(keys, 3, 4), last), like);
}

V window_addend(Compose& c, const ir::SymInt& queries, const ir::SymInt& keys, V before, int64_t window,
                V like) {
  const V first = c.sub(c.add(c.positions(queries, 2, 4), before), c.dims({window - 1}, {}));
  return addend_of(c, c.binary("greater_equal", c.positions(keys, 3, 4), first), like);
}

V unseeing_queries(Compose& c, V addend) {
  V wide = addend;
  while (c.shape(wide).size() < 4) wide = c.unsqueeze(wide, 0);
  const V most = c.reduce("reduce_max", wide, {3}, true);
  return c.binary("equal", most, c.number(most, kMinusInfinity));
}

DType attended_as(DType dtype) { return dtype == DType::kFloat64 ? dtype : DType::kFloat32; }

V attend(NodeContext& context, AttentionOperands& operands) {
  Compose c(context);
  const DType dtype = c.dtype(operands.q), wide = attended_as(dtype);
  const ir::SymInt heads = c.shape(operands.q)[1];
  const V q = c.cast(operands.q, wide);
  const V k = repeat_heads(context, c.cast(operands.k, wide), heads);
  const V v = repeat_heads(context, c.cast(operands.v, wide), heads);
  operands.products = scaled_products(context, q, k, operands.scale);
  operands.capped = operands.products;
  if (operands.softcap > 0)
    operands.capped =
        c.times(c.unary("tanh", c.times(operands.products, 1 / operands.softcap)), operands.softcap);
  operands.masked = operands.addend == ir::kAbsent ? operands.capped
                                                   : c.add(operands.capped, c.cast(operands.addend, wide));
  const DType precision = operands.precision.value_or(wide);
  V scores = c.cast(operands.masked, precision);
  const ir::SymShape shape = c.shape(scores);
  if (operands.sink != ir::kAbsent) {
    const V sink = c.cast(operands.sink, precision);
    scores = c.concat({scores, c.expand(sink, {shape[0], shape[1], shape[2], 1})}, 3);
  }
  V weights = context.add("softmax", {scores}, {{"axis", int64_t{3}}});
  if (operands.sink != ir::kAbsent) weights = c.slice(weights, 3, 0, shape[3]);
  operands.weights = c.cast(weights, wide);
  return c.cast(c.matmul(operands.weights, v), dtype);
}

V chosen_angles(NodeContext& context, V cache, V position_ids, V x) {
  Compose c(context);
  const ir::SymShape shape = c.shape(x);
  V angles = position_ids == ir::kAbsent ? cache : c.gather(cache, position_ids, 0);
  const ir::SymShape have = c.shape(angles);
  if (have.size() != 3 || !demand(ir::Relation::kEqual, have[1], shape[2]))
    context.invalid("the angles have shape " + to_string(have) + " for a sequence of " +
                    std::to_string(shape[2]));
  return c.cast(c.unsqueeze(angles, 1), c.dtype(x));
}

V rotated(NodeContext& context, V x, V cosines, V sines, int64_t turned, bool interleaved) {
  Compose c(context);
  const ir::SymInt width = c.shape(x)[3];
  if (turned == 0) turned = width;
  if (turned < 0 || turned > width || turned % 2 != 0)
    context.invalid("rotary_embedding_dim is " + std::to_string(turned) + " of " + std::to_string(width));
  const int64_t half = turned / 2;
  if (c.shape(cosines)[3] < half || c.shape(sines)[3] < half)
    context.invalid("the caches have fewer than " + std::to_string(half) + " columns");
  const V cosine = c.slice(cosines, 3, 0, half), sine = c.slice(sines, 3, 0, half);
  const V first = interleaved ? c.slice(x, 3, 0, half, 2) : c.slice(x, 3, 0, half);
  const V second = interleaved ? c.slice(x, 3, 1, half, 2) : c.slice(x, 3, half, half);
  const V real = c.sub(c.mul(cosine, first), c.mul(sine, second));
  const V imaginary = c.add(c.mul(sine, first), c.mul(cosine, second));
  ir::SymShape shape = c.shape(x);
  shape[3] = turned;
  // Along an axis of their own, so that a kernel's vectors are of one part.
  const int64_t axis = interleaved ? 4 : 3;
  V result = c.reshape(c.concat({c.unsqueeze(real, axis), c.unsqueeze(imaginary, axis)}, axis), shape);
  if (turned < width) result = c.concat({result, c.slice(x, 3, turned, width - turned)}, 3);
  return result;
}

}  // namespace tensormill::frontend::onnx
