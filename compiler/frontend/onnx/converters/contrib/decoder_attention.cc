// com.microsoft's DecoderMaskedMultiHeadAttention: one query a row of the batch, over keys and values in a
// cache of a fixed length that the step adds to, of several beams, or over those of an encoder.
#include "compiler/frontend/onnx/converters/attention/attend.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// Operands by their place.
enum Operand : size_t {
  kQuery,
  kKey,
  kValue,
  kMask,
  kAddend,
  kPastKey,
  kPastValue,
  kPastLength,
  kBeams,
  kIndirection,
  kBias
};

/// [B,1,heads*D], plus its part of the bias [3*heads*D], as [B,heads,1,D].
V heads_of(NodeContext& context, size_t operand, int64_t heads) {
  Compose c(context);
  V x = context.input(operand);
  if (context.rank(x) == 4) return x;
  if (context.has_input(kBias)) {
    const V bias = context.input(kBias);
    const ir::SymInt width = c.shape(x).back();
    if (c.shape(bias) != ir::SymShape{3 * width})
      context.invalid("bias has shape " + to_string(c.shape(bias)));
    x = c.add(x, c.slice(bias, 0, static_cast<int64_t>(operand) * width, width));
  }
  return split_heads(context, x, heads);
}

/// x with `fill` behind its last axis, for keys that are not seen.
V as_long(NodeContext& context, V x, int64_t keys, double fill) {
  Compose c(context);
  ir::SymShape rest = c.shape(x);
  if (rest.empty() || rest.back() > keys)
    context.invalid("a mask has shape " + to_string(rest) + " for " + std::to_string(keys) + " keys");
  rest.back() = keys - rest.back();
  return rest.back() == 0 ? x : c.concat({x, c.filled(c.dtype(x), rest, fill)}, context.rank(x) - 1);
}

/// What mask_index [B,T], 0 for what is not seen, and attention_bias [..,T] add.
V addend_of_masks(NodeContext& context, const AttentionOperands& operands) {
  Compose c(context);
  const ir::SymInt keys = c.shape(operands.k)[2];
  V addend = ir::kAbsent;
  if (context.has_input(kMask)) {
    const V mask = as_long(context, context.input(kMask), keys, 1);
    if (context.rank(mask) != 2) context.invalid("mask_index has shape " + to_string(c.shape(mask)));
    const V seen = c.cast(c.unsqueeze(c.unsqueeze(mask, 1), 1), DType::kBool);
    addend = c.where(seen, c.number(operands.q, 0),
                     c.number(operands.q, context.float_attr("mask_filter_value", -10000)));
  }
  const bool has_bias = context.has_input(kAddend);
  return added(c, addend, has_bias ? as_long(context, context.input(kAddend), keys, 0) : ir::kAbsent);
}

/// The cache [B,heads,M,D] as each beam sees it: before the step, key t of beam j of a batch entry is the one
/// of beam cache_indirection[entry,j,t].
V of_beams(NodeContext& context, V cache, V before) {
  Compose c(context);
  const ir::SymShape shape = c.shape(cache), beams = c.shape(context.input(kIndirection));
  if (beams.size() != 3 || beams[0] * beams[1] != shape[0] || beams[2] != shape[2])
    context.invalid("cache_indirection has shape " + to_string(beams) + " for a cache of " +
                    to_string(shape));
  const V row = c.iota(shape[0], {shape[0], 1, 1, 1}), width = c.dims({beams[1]}, {});
  const V chosen = c.cast(c.reshape(context.input(kIndirection), {shape[0], 1, shape[2], 1}), DType::kInt64);
  const V from = c.add(c.mul(c.div(row, width), width), chosen);
  const V is_past = c.binary("less", c.positions(shape[2], 2, 4), before);
  return c.gather_elements(cache, c.expand(c.where(is_past, from, row), shape), 0);
}

/// The cache at `past` with the step's keys or values in its place; as output `present`.
V cached(NodeContext& context, size_t past, V fresh, V before, size_t present) {
  Compose c(context);
  const V cache = context.input(past);
  const ir::SymShape shape = c.shape(cache), own = c.shape(fresh);
  if (shape.size() != 4 || own[2] != 1 || shape[0] != own[0] || shape[1] != own[1] || shape[3] != own[3])
    context.invalid("a step of shape " + to_string(own) + " does not fit a cache of " + to_string(shape));
  const V whole = c.where(c.binary("equal", c.positions(shape[2], 2, 4), before), fresh, cache);
  context.set_output(present, whole);
  return context.has_input(kIndirection) ? of_beams(context, whole, before) : whole;
}

}  // namespace

void convert_decoder_masked_attention(NodeContext& context) {
  Compose c(context);
  const int64_t heads = context.required_int("num_heads");
  AttentionOperands operands;
  operands.q = heads_of(context, kQuery, heads);
  operands.k = heads_of(context, kKey, heads);
  operands.v = heads_of(context, kValue, heads);
  V seen = ir::kAbsent;
  if (context.has_input(kPastKey)) {
    // i64 [1,1,1,1]: where the step stands.
    const V before = c.cast(c.reshape(context.input(kPastLength), {1, 1, 1, 1}), DType::kInt64);
    operands.k = cached(context, kPastKey, operands.k, before, 1);
    operands.v = cached(context, kPastValue, operands.v, before, 2);
    const V at = c.positions(c.shape(operands.k)[2], 3, 4);
    seen = addend_of(c, c.binary("less_equal", at, before), operands.q);
  }
  operands.addend = added(c, seen, addend_of_masks(context, operands));
  operands.scale = context.float_attr("scale", 0);
  operands.precision = c.dtype(operands.q);
  context.set_output(0, merge_heads(context, attend(context, operands)));
}

}  // namespace tensormill::frontend::onnx
