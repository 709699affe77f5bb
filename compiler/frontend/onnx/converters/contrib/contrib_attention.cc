// com.microsoft's attention operators: how projections, masks, caches and positions are given.
#include <algorithm>
#include <array>

#include "compiler/frontend/onnx/converters/attention/attend.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/quantized/quantize.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

}  // namespace

// com.microsoft: position ids [B,S], or [1] for the first one of a run.
void convert_rotary_embedding_of_positions(NodeContext& context) {
  Compose c(context);
  const bool flat = context.rank(context.input(0)) == 3;
  V x = context.input(0);
  const ir::SymInt pairs = c.shape(context.input(2)).back();
  if (flat) {
    const int64_t heads = context.int_attr("num_heads", 0);
    x = split_heads(context, x,
                    heads != 0 ? ir::SymInt(heads) : c.shape(x)[2] / std::max<int64_t>(1, 2 * pairs));
  }
  if (c.shape(x).size() != 4) context.invalid("the input has shape " + to_string(c.shape(x)));
  // Heads are as wide as the caches say, unless a part of them is turned.
  if (context.int_attr("rotary_embedding_dim", 0) == 0 && c.shape(x)[3] != context.product(2, pairs))
    context.invalid("the caches have " + std::to_string(pairs) + " columns for heads of " +
                    std::to_string(c.shape(x)[3]));
  V ids = context.input(1);
  const ir::SymInt batch = c.shape(x)[0], length = c.shape(x)[2];
  if (c.shape(ids).size() == 1) ids = c.expand(c.add(ids, c.iota(length, {1, length})), {batch, length});
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
V filter_addend(NodeContext& context, V mask, const ir::SymInt& keys, V like) {
  Compose c(context);
  const ir::SymShape shape = c.shape(mask);
  V seen = ir::kAbsent;
  const ir::SymInt batch = c.shape(like)[0];
  if (shape.size() == 1 && (shape[0] == batch || shape[0] == context.product(2, batch))) {
    const V bounds = c.reshape(c.cast(mask, DType::kInt64), {shape[0], 1, 1, 1}),
            at = c.positions(keys, 3, 4);
    seen = c.binary("less", at, c.slice(bounds, 0, 0, batch));
    if (shape[0] != batch)
      seen = c.binary("and", seen, c.binary("greater_equal", at, c.slice(bounds, 0, batch, batch)));
  } else if (shape.size() == 2 && demand(ir::Relation::kEqual, shape[1], keys)) {
    seen = c.cast(c.reshape(mask, {shape[0], 1, 1, keys}), DType::kBool);
  } else if (shape.size() == 3 && demand(ir::Relation::kEqual, shape[2], keys)) {
    seen = c.cast(c.unsqueeze(mask, 1), DType::kBool);
  } else {
    context.unsupported("mask", "shape " + to_string(shape) + " is not implemented");
  }
  return c.where(seen, c.number(like, 0), c.number(like, context.float_attr("mask_filter_value", -10000)));
}

/// Attention of queries, keys and values under `mask` (filter_addend) and `bias`, either of which may be
/// kAbsent, as [B,S,heads*D].
V attended(NodeContext& context, AttentionOperands operands, V mask, V bias) {
  Compose c(context);
  const ir::SymInt queries = c.shape(operands.q)[2], keys = c.shape(operands.k)[2];
  if (mask != ir::kAbsent) operands.addend = filter_addend(context, mask, keys, operands.q);
  operands.addend = added(c, operands.addend, bias);
  if (context.int_attr("unidirectional", 0) != 0)
    operands.addend =
        added(c, operands.addend, causal_addend(c, queries, keys, c.dims({keys - queries}, {}), operands.q));
  operands.scale = context.float_attr("scale", 0);
  return merge_heads(context, attend(context, operands));
}

/// Part `index` of x [B,S,heads,parts,D] as [B,heads,S,D].
V packed_part(NodeContext& context, V x, int64_t index) {
  Compose c(context);
  return c.transpose(c.squeeze(c.slice(x, 3, index, 1), 3), {0, 2, 1, 3});
}

/// The queries, keys and values of MultiHeadAttention as [B,heads,S,D], without the bias: side by side in
/// columns, keys and values with an axis for the heads, or packed into one operand.
std::array<V, 3> read_heads(NodeContext& context, int64_t heads) {
  Compose c(context);
  const V query = context.input(0);
  const auto packs = [&](V x, int64_t parts) {
    if (x == ir::kAbsent || context.rank(x) != 5) return false;
    const ir::SymShape shape = c.shape(x);
    if (shape[2] != heads || shape[3] != parts)
      context.invalid("a packed operand has shape " + to_string(shape) + " for " + std::to_string(heads) +
                      " heads");
    return true;
  };
  const auto alone = [&](V x) { return context.rank(x) == 4 ? x : split_heads(context, x, heads); };
  if (packs(query, 3))
    return {packed_part(context, query, 0), packed_part(context, query, 1), packed_part(context, query, 2)};
  const V key = context.input(1);
  if (packs(key, 2)) return {alone(query), packed_part(context, key, 0), packed_part(context, key, 1)};
  return {alone(query), alone(key), alone(context.input(2))};
}

}  // namespace

// com.microsoft: query [B,S,H], key [B,T,H], value, bias [3H], key_padding_mask, attention_bias, past_key,
// past_value. Keys and values of a cross attention come as [B,heads,T,D], and have no bias then.
void convert_multi_head_attention(NodeContext& context) {
  Compose c(context);
  const int64_t heads = context.required_int("num_heads");
  std::array<V, 3> parts = read_heads(context, heads);
  int64_t offset = 0;
  for (size_t i = 0; i < 3; ++i) {
    const ir::SymShape shape = c.shape(parts[i]);
    const ir::SymInt width = context.product(heads, shape.back());
    const bool has_bias = i == 0 || !context.has_input(i) || context.rank(context.input(i)) != 4;
    if (context.has_input(3) && has_bias) {
      const V bias = c.slice(context.input(3), 0, offset, width);
      parts[i] = c.add(parts[i], c.reshape(bias, {heads, 1, shape.back()}));
    }
    offset += width;
  }
  if (context.has_input(3) && c.shape(context.input(3)) != ir::SymShape{offset})
    context.invalid("bias has shape " + to_string(c.shape(context.input(3))) + ", expected " +
                    to_string(ir::SymShape{offset}));
  AttentionOperands operands;
  operands.q = parts[0];
  operands.k = appended(context, context.optional_input(6), parts[1]);
  operands.v = appended(context, context.optional_input(7), parts[2]);
  context.set_output(0, attended(context, operands, context.optional_input(4), context.optional_input(5)));
  context.set_output(1, operands.k);
  context.set_output(2, operands.v);
}

namespace {

/// Indices moved into an axis of `extent`.
V index_within(Compose& c, V index, const ir::SymInt& extent) {
  if (extent.is_constant()) return c.clip(index, 0, static_cast<double>(extent.hint() - 1));
  return c.binary("max", c.binary("min", index, c.extent(index, extent - 1)), c.number(index, 0));
}

/// The cache [B,heads,length,D] with `fresh` [B,heads,S,D] in it from position `before` [B,1,1,1] on; `past`
/// may be kAbsent.
V cache_with(NodeContext& context, V past, V fresh, V before, const ir::SymInt& length) {
  Compose c(context);
  ir::SymShape shape = c.shape(fresh);
  const ir::SymInt count = shape[2];
  shape[2] = length;
  V base = past;
  if (base != ir::kAbsent && !is_proven(ir::Relation::kEqual, c.shape(base)[2], length)) {
    ir::SymShape pads(8, 0);
    pads[6] = length - c.shape(base)[2];
    base = context.add("pad", {base}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}});
  }
  if (base == ir::kAbsent) base = c.filled(c.dtype(fresh), {}, 0);
  const V from = c.sub(c.positions(length, 2, 4), before);
  const V is_fresh = c.binary("and", c.binary("greater_equal", from, c.number(from, 0)),
                              c.binary("less", from, c.extent(from, count)));
  const V index = c.expand(index_within(c, from, count), shape);
  return c.where(is_fresh, c.gather_elements(fresh, index, 2), base);
}

/// bool [1]: whether all numbers are at most `most`.
V within(Compose& c, V numbers, const ir::SymInt& most) {
  const V largest = c.reshape(c.reduce("reduce_max", numbers, {0}, false), {1});
  return c.binary("less_equal", largest, c.extent(largest, most));
}

/// The heads of queries, keys and values: in three inputs, or side by side in the first one.
AttentionOperands grouped_heads(NodeContext& context) {
  Compose c(context);
  const int64_t heads = context.required_int("num_heads"), kv_heads = context.required_int("kv_num_heads");
  AttentionOperands operands;
  if (context.has_input(1) != context.has_input(2)) context.invalid("key and value come together");
  if (context.has_input(1)) {
    operands.q = split_heads(context, context.input(0), heads);
    operands.k = split_heads(context, context.input(1), kv_heads);
    operands.v = split_heads(context, context.input(2), kv_heads);
    return operands;
  }
  if (heads < 1 || kv_heads < 1 || heads > kMaxTensorBytes || kv_heads > kMaxTensorBytes)
    context.invalid("there are " + std::to_string(heads) + " heads of queries and " +
                    std::to_string(kv_heads) + " of keys");
  const V all = split_heads(context, context.input(0), heads + 2 * kv_heads);
  operands.q = c.slice(all, 1, 0, heads);
  operands.k = c.slice(all, 1, heads, kv_heads);
  operands.v = c.slice(all, 1, heads + kv_heads, kv_heads);
  return operands;
}

/// total_sequence_length: the keys of the past and those of the `queries` new ones.
ir::SymInt total_length(NodeContext& context, const ir::SymInt& queries) {
  const ir::SymShape totals = context.known_ints(6, "total_sequence_length");
  if (totals.size() != 1)
    context.invalid("total_sequence_length has shape " + to_string(context.type(context.input(6)).shape));
  const ir::SymInt& total = totals[0];
  const bool has_queries = demand(ir::Relation::kLessEqual, 1, queries);
  if (!has_queries || !demand(ir::Relation::kLessEqual, total, kMaxTensorBytes) ||
      !demand(ir::Relation::kLessEqual, queries, total))
    context.invalid("total_sequence_length is " + to_string(total) + " for " + std::to_string(queries) +
                    " queries");
  return total;
}

/// Where the keys of a grouped-query attention lie in its cache: i64 [B,1,1,1] each.
struct CachePlaces {
  V valid = ir::kAbsent;   ///< how many keys count, with the new ones
  V before = ir::kAbsent;  ///< how many of them are those of the past
};

/// The places that seqlens_k says. Of the first run, which has no past, all queries are new, those behind the
/// valid ones too. `held`: the capacity of the past, `keys`: of the cache that is made.
CachePlaces cache_places(NodeContext& context, const ir::SymInt& batch, const ir::SymInt& queries,
                         const ir::SymInt& held, const ir::SymInt& keys) {
  Compose c(context);
  CachePlaces places;
  places.valid = c.plus(c.reshape(c.cast(context.input(5), DType::kInt64), {batch, 1, 1, 1}), 1);
  const auto before_of = [&](V of) {
    return c.binary("max", c.sub(of, c.extent(of, queries)), c.number(of, 0));
  };
  const Check fits{c.binary("and", within(c, before_of(places.valid), held), within(c, places.valid, keys)),
                   "seqlens_k make {} keys with {} new ones, the cache has {}",
                   {c.reshape(places.valid, {batch}), c.dims({queries}, {1}), c.dims({held}, {1})}};
  places.valid = c.add(places.valid, zero_if(context, fits));
  places.before = before_of(places.valid);
  return places;
}

/// Rotary embedding of queries and keys by their places in the cache, or by position_ids.
void rotate_grouped(NodeContext& context, AttentionOperands& operands, const CachePlaces& places) {
  Compose c(context);
  const ir::SymInt batch = c.shape(operands.q)[0], queries = c.shape(operands.q)[2];
  V rows = c.reshape(c.add(c.positions(queries, 3, 4), places.before), {batch, queries});
  if (context.has_input(9)) {
    // Of the first run, whose keys are all its own, the first position alone counts.
    const V given = c.cast(context.input(9), DType::kInt64);
    const V first = c.reshape(c.slice(c.slice(given, 0, 0, 1), 1, 0, 1), {});
    rows = c.where(c.reshape(within(c, places.valid, queries), {}), c.add(rows, first), given);
  }
  const V ids = index_within(c, rows, c.shape(context.input(7))[0]);
  for (V* rotary : {&operands.q, &operands.k}) {
    const V cosines = chosen_angles(context, context.input(7), ids, *rotary);
    const V sines = chosen_angles(context, context.input(8), ids, *rotary);
    *rotary = rotated(context, *rotary, cosines, sines, 2 * c.shape(cosines)[3],
                      context.int_attr("rotary_interleaved", 0) != 0);
  }
}

/// What is added to the products: no query sees later keys, nor those that its window has left behind; and
/// attention_bias.
V grouped_addend(NodeContext& context, V q, const CachePlaces& places, const ir::SymInt& keys) {
  Compose c(context);
  const V own = c.add(c.positions(c.shape(q)[2], 2, 4), places.before), at = c.positions(keys, 3, 4);
  V seen = c.binary("less_equal", at, own);
  const int64_t window = context.int_attr("local_window_size", -1);
  if (window > 0)
    seen = c.binary("and", seen, c.binary("greater", at, c.minus(own, static_cast<double>(window))));
  const V addend = addend_of(c, seen, q);
  if (!context.has_input(10)) return addend;
  // For the keys in use; those of a cache that is longer are not seen.
  V bias = context.input(10);
  ir::SymShape shape = c.shape(bias);
  if (shape.size() != 4 || !demand(ir::Relation::kLessEqual, shape[3], keys))
    context.invalid("attention_bias has shape " + to_string(shape) + " for " + to_string(keys) + " keys");
  const bool is_short = !is_proven(ir::Relation::kEqual, shape[3], keys);
  shape[3] = keys - shape[3];
  if (is_short) bias = c.concat({bias, c.filled(c.dtype(bias), shape, 0)}, 3);
  return c.add(addend, bias);
}

}  // namespace

// com.microsoft: query [B,S,H], key, value (or all three in the query), past_key [B,heads,T,D], past_value,
// seqlens_k [B] (valid keys, less one), total_sequence_length, cos_cache, sin_cache, position_ids [B,S],
// attention_bias [1 or B,1 or heads,S,T], head_sink [heads].
void convert_group_query_attention(NodeContext& context) {
  Compose c(context);
  AttentionOperands operands = grouped_heads(context);
  const ir::SymInt batch = c.shape(operands.q)[0], queries = c.shape(operands.q)[2];
  const V past = context.optional_input(3);
  const ir::SymInt held = past == ir::kAbsent ? ir::SymInt(0) : c.shape(past)[2];
  const ir::SymInt keys = max(held, total_length(context, queries));
  const CachePlaces places = cache_places(context, batch, queries, held, keys);
  if (context.int_attr("do_rotary", 0) != 0) rotate_grouped(context, operands, places);
  operands.k = cache_with(context, past, operands.k, places.before, keys);
  operands.v = cache_with(context, context.optional_input(4), operands.v, places.before, keys);
  operands.addend = grouped_addend(context, operands.q, places, keys);
  const int64_t heads = context.required_int("num_heads");
  if (context.has_input(11))
    operands.sink = c.reshape(context.input(11), {1, heads, 1, 1});
  else if (context.int_attr("smooth_softmax", 0) > 0)
    operands.sink = c.filled(c.dtype(operands.q), {1, heads, 1, 1}, 0);
  operands.scale = context.float_attr("scale", 0);
  operands.softcap = context.float_attr("softcap", 0);
  context.set_output(0, merge_heads(context, attend(context, operands)));
  context.set_output(1, operands.k);
  context.set_output(2, operands.v);
}

namespace {

/// Attention of `all` [B,S,3H], queries, keys and values side by side. `mask`, `past` (keys and values
/// [2,B,heads,P,D]) and `bias` may be kAbsent.
void attend_packed(NodeContext& context, V all, V mask, V past, V bias) {
  Compose c(context);
  const int64_t heads = context.required_int("num_heads");
  const ir::SymInt columns = c.shape(all).back();
  const ir::Ints widths = context.ints_attr("qkv_hidden_sizes", {columns / 3, columns / 3, columns / 3});
  if (widths.size() != 3 || widths[0] < 1 || widths[1] != widths[0] || widths[2] < 1 ||
      widths[0] + widths[1] + widths[2] != columns)
    context.invalid("qkv_hidden_sizes " + to_string(widths) + " do not fit " + std::to_string(columns) +
                    " columns");
  const auto part = [&](int64_t start, int64_t width) {
    return split_heads(context, c.slice(all, 2, start, width), heads);
  };
  AttentionOperands operands;
  operands.q = part(0, widths[0]);
  operands.k = part(widths[0], widths[1]);
  operands.v = part(widths[0] + widths[1], widths[2]);
  if (past != ir::kAbsent) {
    if (context.rank(past) != 5 || c.shape(past)[0] != 2)
      context.invalid("past has shape " + to_string(c.shape(past)));
    operands.k = appended(context, c.squeeze(c.slice(past, 0, 0, 1), 0), operands.k);
    operands.v = appended(context, c.squeeze(c.slice(past, 0, 1, 1), 0), operands.v);
  }
  context.set_output(0, attended(context, operands, mask, bias));
  if (widths[1] == widths[2])
    context.set_output(1, c.concat({c.unsqueeze(operands.k, 0), c.unsqueeze(operands.v, 0)}, 0));
}

}  // namespace

// com.microsoft Attention: input [B,S,K], weights [K,3H] of queries, keys and values, bias, mask, past keys
// and values, attention_bias.
void convert_packed_attention(NodeContext& context) {
  Compose c(context);
  V all = c.matmul(context.input(0), context.input(1));
  if (context.has_input(2)) all = c.add(all, context.input(2));
  attend_packed(context, all, context.optional_input(3), context.optional_input(4),
                context.optional_input(5));
}

// The same of integers: input and weights quantized, bias, their scales (the weights': one, or one a column),
// mask, their zero points, past. What is behind the projection is computed in float32.
void convert_quantized_attention(NodeContext& context) {
  Compose c(context);
  const V x = centered(c, context.input(0), per_line(c, context.optional_input(6), false), DType::kInt32);
  const V weights =
      centered(c, context.input(1), per_line(c, context.optional_input(7), false), DType::kInt32);
  const V scale = c.mul(per_line(c, context.input(3), false), per_line(c, context.input(4), false));
  V all = c.mul(c.cast(c.matmul(x, weights), DType::kFloat32), scale);
  if (context.has_input(2)) all = c.add(all, context.input(2));
  attend_packed(context, all, context.optional_input(5), context.optional_input(8), ir::kAbsent);
}

}  // namespace tensormill::frontend::onnx
