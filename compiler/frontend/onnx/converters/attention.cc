// Attention and rotary embeddings: heads side by side in the columns, or with an axis of their own.
#include <algorithm>
#include <limits>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/roots.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// [B,S,heads*D] as [B,heads,S,D].
V split_heads(NodeContext& context, V x, int64_t heads) {
  Compose c(context);
  const Shape shape = c.shape(x);
  if (shape.size() != 3 || heads < 1 || shape[2] % heads != 0)
    context.invalid("an operand of shape " + to_string(shape) + " does not divide into " +
                    std::to_string(heads) + " heads");
  return c.transpose(c.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

/// [B,heads,S,D] as [B,S,heads*D].
V merge_heads(NodeContext& context, V x) {
  Compose c(context);
  const Shape shape = c.shape(x);
  return c.reshape(c.transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], context.product(shape[1], shape[3])});
}

/// Keys and values of fewer heads than the queries have serve several of them.
V repeat_heads(NodeContext& context, V x, int64_t heads) {
  Compose c(context);
  const Shape shape = c.shape(x);
  if (shape[1] == heads) return x;
  if (shape[1] < 1 || heads % shape[1] != 0)
    context.invalid(std::to_string(heads) + " heads of queries do not divide over " +
                    std::to_string(shape[1]) + " of keys");
  const V wide = c.expand(c.unsqueeze(x, 2), {shape[0], shape[1], heads / shape[1], shape[2], shape[3]});
  return c.reshape(wide, {shape[0], heads, shape[2], shape[3]});
}

/// `past` and `present` along the axis of the sequence.
V appended(NodeContext& context, V past, V present) {
  return past == ir::kAbsent ? present : Compose(context).concat({past, present}, 2);
}

/// 0 where `allowed`, minus infinity elsewhere, in the type of `like`.
V addend_of(Compose& c, V allowed, V like) {
  return c.where(allowed, c.number(like, 0), c.number(like, kMinusInfinity));
}

V plus(Compose& c, V a, V b) { return a == ir::kAbsent ? b : b == ir::kAbsent ? a : c.add(a, b); }

/// 0, 1 ... along axis `axis` of four.
V positions(Compose& c, int64_t count, size_t axis) {
  Shape shape(4, 1);
  shape[axis] = count;
  return c.ints(c.count_to(count), shape);
}

/// A query at i sees the keys up to i + `before`, an integer or a tensor of them.
V causal_addend(Compose& c, int64_t queries, int64_t keys, V before, V like) {
  const V last = c.add(positions(c, queries, 2), before);
  return addend_of(c, c.binary("less_equal", positions(c, keys, 3), last), like);
}

/// Only the last `window` of the keys that a causal query sees.
V window_addend(Compose& c, int64_t queries, int64_t keys, V before, int64_t window, V like) {
  const V first = c.sub(c.add(positions(c, queries, 2), before), c.ints({window - 1}, {}));
  return addend_of(c, c.binary("greater_equal", positions(c, keys, 3), first), like);
}

/// Which queries [.., S, 1] see no key: nothing but minus infinity is added to their scores.
V unseeing_queries(Compose& c, V addend) {
  V wide = addend;
  while (c.shape(wide).size() < 4) wide = c.unsqueeze(wide, 0);
  const V most = c.reduce("reduce_max", wide, {3}, true);
  return c.binary("equal", most, c.number(most, kMinusInfinity));
}

struct Operands {
  V q, k, v;               ///< [B,heads,S,D], [B,heads or a divisor,T,D], [.., T,Dv]
  V addend = ir::kAbsent;  ///< broadcasts to [B,heads,S,T]
  double scale = 0;        ///< of the products of queries and keys; 0 for 1/sqrt(D)
  double softcap = 0;
  DType precision = DType::kFloat32;  ///< of the softmax
  V products = ir::kAbsent;           ///< set: scaled products
  V capped = ir::kAbsent;             ///< set: after the soft cap
  V masked = ir::kAbsent;             ///< set: after the addend
  V weights = ir::kAbsent;            ///< set: after the softmax
};

/// softmax(softcap(Q K^T * scale) + addend) V
V attend(NodeContext& context, Operands& operands) {
  Compose c(context);
  const int64_t heads = c.shape(operands.q)[1];
  const V k = repeat_heads(context, operands.k, heads), v = repeat_heads(context, operands.v, heads);
  const V scale = operands.scale != 0 ? c.number(operands.q, operands.scale)
                                      : inverse_root(context, operands.q, c.shape(operands.q)[3]);
  operands.products = c.mul(c.matmul(operands.q, k, true), scale);
  operands.capped = operands.products;
  if (operands.softcap > 0)
    operands.capped =
        c.times(c.unary("tanh", c.times(operands.products, 1 / operands.softcap)), operands.softcap);
  operands.masked = plus(c, operands.capped, operands.addend);
  const DType dtype = c.dtype(operands.q);
  const V weights =
      context.add("softmax", {c.cast(operands.masked, operands.precision)}, {{"axis", int64_t{3}}});
  operands.weights = c.cast(weights, dtype);
  return c.matmul(operands.weights, v);
}

/// The standard operator's mask as something to add: shorter rows mean that no later key is seen.
V mask_addend(NodeContext& context, V mask, int64_t keys, V like) {
  Compose c(context);
  Shape shape = c.shape(mask);
  if (shape.empty() || shape.back() > keys || shape.size() > 4)
    context.invalid("attn_mask has shape " + to_string(shape) + " for " + std::to_string(keys) + " keys");
  const bool is_bool = c.dtype(mask) == DType::kBool;
  if (shape.back() < keys) {
    const int64_t axis = static_cast<int64_t>(shape.size()) - 1;
    shape.back() = keys - shape.back();
    mask = c.concat({mask, c.filled(c.dtype(mask), shape, is_bool ? 0 : kMinusInfinity)}, axis);
  }
  return is_bool ? addend_of(c, mask, like) : c.cast(mask, c.dtype(like));
}

/// What position ids choose from a cache: [B or 1,1,S,D/2].
V chosen_angles(NodeContext& context, V cache, V position_ids, V x) {
  Compose c(context);
  const Shape shape = c.shape(x);
  V angles = position_ids == ir::kAbsent ? cache : c.gather(cache, position_ids, 0);
  const Shape have = c.shape(angles);
  if (have.size() != 3 || have[1] != shape[2])
    context.invalid("the angles have shape " + to_string(have) + " for a sequence of " +
                    std::to_string(shape[2]));
  return c.cast(c.unsqueeze(angles, 1), c.dtype(x));
}

/// Pairs of elements turned by their position's angle (Su et al., "RoFormer", 2021, section 3.2.2); x
/// [B,heads,S,D].
V rotated(NodeContext& context, V x, V cosines, V sines, int64_t turned, bool interleaved) {
  Compose c(context);
  const int64_t width = c.shape(x)[3];
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
  Shape shape = c.shape(x);
  shape[3] = turned;
  V result = interleaved ? c.reshape(c.concat({c.unsqueeze(real, 4), c.unsqueeze(imaginary, 4)}, 4), shape)
                         : c.concat({real, imaginary}, 3);
  if (turned < width) result = c.concat({result, c.slice(x, 3, turned, width - turned)}, 3);
  return result;
}

}  // namespace

// Opset 23 and 24: queries of 3 or 4 dims, fewer heads of keys, a cache of past ones, or one whose valid
// lengths are given.
void convert_attention(NodeContext& context) {
  Compose c(context);
  Operands operands;
  const bool flat = context.rank(context.input(0)) == 3;
  const auto head_axis = [&](size_t index, const char* heads) {
    const V x = context.input(index);
    return flat ? split_heads(context, x, context.required_int(heads)) : x;
  };
  operands.q = head_axis(0, "q_num_heads");
  operands.k = appended(context, context.optional_input(4), head_axis(1, "kv_num_heads"));
  operands.v = appended(context, context.optional_input(5), head_axis(2, "kv_num_heads"));
  for (V operand : {operands.q, operands.k, operands.v}) {
    if (c.shape(operand).size() != 4) context.invalid("an operand has shape " + to_string(c.shape(operand)));
  }
  const V like = operands.q;
  const int64_t batch = c.shape(like)[0], queries = c.shape(like)[2], keys = c.shape(operands.k)[2];
  if (context.has_input(3)) operands.addend = mask_addend(context, context.input(3), keys, like);
  V valid = ir::kAbsent;
  if (context.has_input(6)) {
    // Beside valid lengths, a mask of three dims is one of each batch entry, for all heads, if it can be.
    if (operands.addend != ir::kAbsent && c.shape(operands.addend).size() == 3 &&
        c.shape(operands.addend)[0] == batch)
      operands.addend = c.unsqueeze(operands.addend, 1);
    valid = c.reshape(c.cast(context.input(6), DType::kInt64), {batch, 1, 1, 1});
    operands.addend =
        plus(c, operands.addend, addend_of(c, c.binary("less", positions(c, keys, 3), valid), like));
  }
  const int64_t window = context.int_attr("local_window_size", -1);
  if (window != -1 && window < 1) context.invalid("local_window_size is " + std::to_string(window));
  if (window > 0 || context.int_attr("is_causal", 0) != 0) {
    V before = c.ints({context.has_input(4) ? c.shape(context.input(4))[2] : 0}, {});
    if (!context.has_input(4) && valid != ir::kAbsent) before = c.sub(valid, c.ints({queries}, {}));
    operands.addend = plus(c, operands.addend, causal_addend(c, queries, keys, before, like));
    if (window > 0)
      operands.addend = plus(c, operands.addend, window_addend(c, queries, keys, before, window, like));
  }
  operands.scale = context.float_attr("scale", 0);
  operands.softcap = context.float_attr("softcap", 0);
  operands.precision =
      context.has_attr("softmax_precision") ? context.dtype_attr("softmax_precision") : c.dtype(like);
  if (!is_float(operands.precision)) context.invalid("softmax_precision is no float type");
  V result = attend(context, operands);
  // Without a mask each query sees a key: the first, or those of the past.
  const V blind = context.has_input(3) || context.has_input(6) || window > 0
                      ? unseeing_queries(c, operands.addend)
                      : ir::kAbsent;
  const auto blinded = [&](V x, V where) {
    return where == ir::kAbsent ? x : c.where(where, c.number(x, 0), x);
  };
  if (!flat || (blind != ir::kAbsent && c.shape(blind)[1] != 1)) {
    result = blinded(result, blind);
    context.set_output(0, flat ? merge_heads(context, result) : result);
  } else {
    // Behind the heads' merging, so that the whole is still one attention.
    result = merge_heads(context, result);
    context.set_output(0, blinded(result, blind == ir::kAbsent ? blind : c.squeeze(blind, 1)));
  }
  context.set_output(1, operands.k);
  context.set_output(2, operands.v);
  const int64_t mode = context.int_attr("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) context.invalid("qk_matmul_output_mode is " + std::to_string(mode));
  const bool tells = context.num_outputs() > 3 && !context.node().outputs[3].empty();
  if (!tells) return;
  if (mode == 3) operands.weights = blinded(operands.weights, blind);
  const V stages[] = {operands.products, operands.capped, operands.masked, operands.weights};
  context.set_output(3, stages[mode]);
}

// Opset 23: X [B,heads,S,D] or [B,S,heads*D], caches [positions,D/2], or [B,S,D/2] without position ids.
void convert_rotary_embedding(NodeContext& context) {
  Compose c(context);
  const bool flat = context.rank(context.input(0)) == 3;
  const V x =
      flat ? split_heads(context, context.input(0), context.required_int("num_heads")) : context.input(0);
  if (c.shape(x).size() != 4) context.invalid("X has shape " + to_string(c.shape(x)));
  const V cosines = chosen_angles(context, context.input(1), context.optional_input(3), x);
  const V sines = chosen_angles(context, context.input(2), context.optional_input(3), x);
  const V result = rotated(context, x, cosines, sines, context.int_attr("rotary_embedding_dim", 0),
                           context.int_attr("interleaved", 0) != 0);
  context.set_output(0, flat ? merge_heads(context, result) : result);
}

// com.microsoft: position ids [B,S], or [1] for the first one of a run.
void convert_rotary_embedding_of_positions(NodeContext& context) {
  Compose c(context);
  if (context.int_attr("is_packed_batching", 0) != 0)
    context.unsupported("is_packed_batching", "packed batches are not implemented");
  const bool flat = context.rank(context.input(0)) == 3;
  V x = context.input(0);
  const int64_t pairs = c.shape(context.input(2)).back();
  if (flat) {
    const int64_t heads = context.int_attr("num_heads", 0);
    x = split_heads(context, x, heads != 0 ? heads : c.shape(x)[2] / std::max<int64_t>(1, 2 * pairs));
  }
  if (c.shape(x).size() != 4) context.invalid("the input has shape " + to_string(c.shape(x)));
  V ids = context.input(1);
  const int64_t batch = c.shape(x)[0], length = c.shape(x)[2];
  if (c.shape(ids).size() == 1)
    ids = c.expand(c.add(ids, c.ints(c.count_to(length), {1, length})), {batch, length});
  const V cosines = chosen_angles(context, context.input(2), ids, x);
  const V sines = chosen_angles(context, context.input(3), ids, x);
  V result = rotated(context, x, cosines, sines, context.int_attr("rotary_embedding_dim", 0),
                     context.int_attr("interleaved", 0) != 0);
  result = c.times(result, context.float_attr("scale", 1.0));
  context.set_output(0, flat ? merge_heads(context, result) : result);
}

namespace {

/// com.microsoft's masks: [B,T] and [B,S,T] hold 0 for what is not seen, [B] the number of keys that are,
/// [2B] where those that are seen end and, behind that, where they start.
V filter_addend(NodeContext& context, V mask, int64_t keys, V like) {
  Compose c(context);
  const Shape shape = c.shape(mask);
  V seen = ir::kAbsent;
  const int64_t batch = c.shape(like)[0];
  if (shape.size() == 1 && (shape[0] == batch || shape[0] == context.product(2, batch))) {
    const V bounds = c.reshape(c.cast(mask, DType::kInt64), {shape[0], 1, 1, 1}), at = positions(c, keys, 3);
    seen = c.binary("less", at, c.slice(bounds, 0, 0, batch));
    if (shape[0] != batch)
      seen = c.binary("and", seen, c.binary("greater_equal", at, c.slice(bounds, 0, batch, batch)));
  } else if (shape.size() == 2 && shape[1] == keys) {
    seen = c.cast(c.reshape(mask, {shape[0], 1, 1, keys}), DType::kBool);
  } else if (shape.size() == 3 && shape[2] == keys) {
    seen = c.cast(c.unsqueeze(mask, 1), DType::kBool);
  } else {
    context.unsupported("mask", "shape " + to_string(shape) + " is not implemented");
  }
  return c.where(seen, c.number(like, 0), c.number(like, context.float_attr("mask_filter_value", -10000)));
}

}  // namespace

// com.microsoft: query [B,S,H], key [B,T,H], value, bias [3H], key_padding_mask, attention_bias, past_key,
// past_value.
void convert_multi_head_attention(NodeContext& context) {
  Compose c(context);
  if (!context.has_input(1) || !context.has_input(2) || context.rank(context.input(0)) != 3 ||
      context.rank(context.input(1)) != 3)
    context.unsupported("query", "packed queries, keys and values are not implemented");
  const int64_t heads = context.required_int("num_heads");
  V parts[3];
  int64_t offset = 0;
  for (size_t i = 0; i < 3; ++i) {
    parts[i] = context.input(i);
    const int64_t width = c.shape(parts[i]).back();
    if (context.has_input(3)) parts[i] = c.add(parts[i], c.slice(context.input(3), 0, offset, width));
    offset += width;
    parts[i] = split_heads(context, parts[i], heads);
  }
  Operands operands;
  operands.q = parts[0];
  operands.k = appended(context, context.optional_input(6), parts[1]);
  operands.v = appended(context, context.optional_input(7), parts[2]);
  const int64_t queries = c.shape(operands.q)[2], keys = c.shape(operands.k)[2];
  if (context.has_input(4)) operands.addend = filter_addend(context, context.input(4), keys, operands.q);
  operands.addend = plus(c, operands.addend, context.optional_input(5));
  if (context.int_attr("unidirectional", 0) != 0)
    operands.addend =
        plus(c, operands.addend, causal_addend(c, queries, keys, c.ints({keys - queries}, {}), operands.q));
  operands.scale = context.float_attr("scale", 0);
  operands.precision = c.dtype(operands.q);
  context.set_output(0, merge_heads(context, attend(context, operands)));
  context.set_output(1, operands.k);
  context.set_output(2, operands.v);
}

namespace {

/// The cache [B,heads,length,D] with `fresh` [B,heads,S,D] in it from position `before` [B,1,1,1] on; `past`
/// may be kAbsent.
V cache_with(NodeContext& context, V past, V fresh, V before, int64_t length) {
  Compose c(context);
  Shape shape = c.shape(fresh);
  const int64_t count = shape[2];
  shape[2] = length;
  V base = past;
  if (base != ir::kAbsent && c.shape(base)[2] < length) {
    std::vector<int64_t> pads(8, 0);
    pads[6] = length - c.shape(base)[2];
    base = context.add("pad", {base}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}});
  }
  if (base == ir::kAbsent) base = c.filled(c.dtype(fresh), {}, 0);
  const V from = c.sub(positions(c, length, 2), before);
  const V is_fresh = c.binary("and", c.binary("greater_equal", from, c.number(from, 0)),
                              c.binary("less", from, c.number(from, static_cast<double>(count))));
  const V index = c.expand(c.clip(from, 0, static_cast<double>(count - 1)), shape);
  return c.where(is_fresh, c.gather_elements(fresh, index, 2), base);
}

}  // namespace

// com.microsoft: query [B,S,H], key, value (or all three in the query), past_key [B,heads,T,D], past_value,
// seqlens_k [B] (valid keys, less one), total_sequence_length, cos_cache, sin_cache.
void convert_group_query_attention(NodeContext& context) {
  Compose c(context);
  for (size_t i = 9; i < context.num_inputs(); ++i) {
    if (context.has_input(i))
      context.unsupported("inputs", "operand " + std::to_string(i) + " is not implemented");
  }
  if (context.int_attr("smooth_softmax", 0) > 0) context.unsupported("smooth_softmax", "is not implemented");
  const int64_t heads = context.required_int("num_heads"), kv_heads = context.required_int("kv_num_heads");
  Operands operands;
  if (context.has_input(1) != context.has_input(2)) context.invalid("key and value come together");
  if (context.has_input(1)) {
    operands.q = split_heads(context, context.input(0), heads);
    operands.k = split_heads(context, context.input(1), kv_heads);
    operands.v = split_heads(context, context.input(2), kv_heads);
  } else {
    // The heads of queries, keys and values side by side.
    if (heads < 1 || kv_heads < 1 || heads > kMaxTensorBytes || kv_heads > kMaxTensorBytes)
      context.invalid("there are " + std::to_string(heads) + " heads of queries and " +
                      std::to_string(kv_heads) + " of keys");
    const V all = split_heads(context, context.input(0), heads + 2 * kv_heads);
    operands.q = c.slice(all, 1, 0, heads);
    operands.k = c.slice(all, 1, heads, kv_heads);
    operands.v = c.slice(all, 1, heads + kv_heads, kv_heads);
  }
  const int64_t batch = c.shape(operands.q)[0], queries = c.shape(operands.q)[2];
  const int64_t total = context.known_scalar(6, "total_sequence_length").element_as_int(0);
  const V past = context.optional_input(3);
  const int64_t held = past == ir::kAbsent ? 0 : c.shape(past)[2];
  if (total < queries || total > kMaxTensorBytes || queries < 1)
    context.invalid("total_sequence_length is " + std::to_string(total) + " for " + std::to_string(queries) +
                    " queries");
  const V valid = c.plus(c.reshape(c.cast(context.input(5), DType::kInt64), {batch, 1, 1, 1}), 1);
  const V before = total == queries ? c.filled(DType::kInt64, {batch, 1, 1, 1}, 0)
                                    : c.minus(valid, static_cast<double>(queries));
  if (context.int_attr("do_rotary", 0) != 0) {
    const V rows = c.reshape(c.add(positions(c, queries, 3), before), {batch, queries});
    const V ids = c.clip(rows, 0, static_cast<double>(c.shape(context.input(7))[0] - 1));
    for (V* turned : {&operands.q, &operands.k}) {
      const V cosines = chosen_angles(context, context.input(7), ids, *turned);
      const V sines = chosen_angles(context, context.input(8), ids, *turned);
      *turned = rotated(context, *turned, cosines, sines, 2 * c.shape(cosines)[3],
                        context.int_attr("rotary_interleaved", 0) != 0);
    }
  }
  const int64_t keys = std::max(held, total);
  operands.k = cache_with(context, past, operands.k, before, keys);
  operands.v = cache_with(context, context.optional_input(4), operands.v, before, keys);
  const V own = c.add(positions(c, queries, 2), before), at = positions(c, keys, 3);
  V seen = c.binary("less_equal", at, own);
  const int64_t window = context.int_attr("local_window_size", -1);
  if (window > 0)
    seen = c.binary("and", seen, c.binary("greater", at, c.minus(own, static_cast<double>(window))));
  operands.addend = addend_of(c, seen, operands.q);
  operands.scale = context.float_attr("scale", 0);
  operands.softcap = context.float_attr("softcap", 0);
  operands.precision = c.dtype(operands.q);
  context.set_output(0, merge_heads(context, attend(context, operands)));
  context.set_output(1, operands.k);
  context.set_output(2, operands.v);
}

// com.microsoft Attention: input [B,S,K], weights [K,3H] of queries, keys and values, bias, mask, past keys
// and values [2,B,heads,P,D], attention_bias.
void convert_packed_attention(NodeContext& context) {
  Compose c(context);
  if (context.int_attr("do_rotary", 0) != 0) context.unsupported("do_rotary", "is not implemented");
  const int64_t heads = context.required_int("num_heads");
  V all = c.matmul(context.input(0), context.input(1));
  if (context.has_input(2)) all = c.add(all, context.input(2));
  const int64_t columns = c.shape(all).back();
  const std::vector<int64_t> widths =
      context.ints_attr("qkv_hidden_sizes", {columns / 3, columns / 3, columns / 3});
  if (widths.size() != 3 || widths[0] < 1 || widths[1] != widths[0] || widths[2] < 1 ||
      widths[0] + widths[1] + widths[2] != columns)
    context.invalid("qkv_hidden_sizes " + to_string(widths) + " do not fit " + std::to_string(columns) +
                    " columns");
  const auto part = [&](int64_t start, int64_t width) {
    return split_heads(context, c.slice(all, 2, start, width), heads);
  };
  Operands operands;
  operands.q = part(0, widths[0]);
  operands.k = part(widths[0], widths[1]);
  operands.v = part(widths[0] + widths[1], widths[2]);
  if (context.has_input(4)) {
    const V past = context.input(4);
    if (context.rank(past) != 5 || c.shape(past)[0] != 2)
      context.invalid("past has shape " + to_string(c.shape(past)));
    operands.k = appended(context, c.squeeze(c.slice(past, 0, 0, 1), 0), operands.k);
    operands.v = appended(context, c.squeeze(c.slice(past, 0, 1, 1), 0), operands.v);
  }
  const int64_t queries = c.shape(operands.q)[2], keys = c.shape(operands.k)[2];
  if (context.has_input(3)) operands.addend = filter_addend(context, context.input(3), keys, operands.q);
  operands.addend = plus(c, operands.addend, context.optional_input(5));
  if (context.int_attr("unidirectional", 0) != 0)
    operands.addend =
        plus(c, operands.addend, causal_addend(c, queries, keys, c.ints({keys - queries}, {}), operands.q));
  operands.scale = context.float_attr("scale", 0);
  operands.precision = c.dtype(operands.q);
  context.set_output(0, merge_heads(context, attend(context, operands)));
  if (widths[1] == widths[2])
    context.set_output(1, c.concat({c.unsqueeze(operands.k, 0), c.unsqueeze(operands.v, 0)}, 0));
}

}  // namespace tensormill::frontend::onnx
