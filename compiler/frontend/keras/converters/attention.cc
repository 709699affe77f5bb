// Attention layers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/frontend/keras/layer_context.h"

namespace tensormill::frontend::keras {

namespace {

/// Which axes of [batch,...,features] attention goes along, which are the steps, and which are as the batch
/// is.
struct AttentionAxes {
  std::vector<int64_t> along, rest;
};

struct Operands {
  V query, key, value;         ///< [batch,...,features]
  V query_mask = ir::kAbsent;  ///< [batch,steps]
  V value_mask = ir::kAbsent, key_mask = ir::kAbsent;
  V given_mask = ir::kAbsent;  ///< [batch,query steps,value steps]
  bool is_causal = false, has_scores = false;
};

V mask_of(LayerContext& context, const char* argument, size_t place) {
  const auto given = context.tensor_argument(argument);
  return given ? context.raw(*given) : context.mask(place);
}

bool flag_argument(const LayerContext& context, const char* name, size_t position = SIZE_MAX) {
  const Json& value = context.argument(name, position);
  if (value.is_null()) return false;
  if (!value.is_boolean()) context.invalid("argument " + std::string(name) + " is no boolean");
  return value.get<bool>();
}

Operands operands_of(LayerContext& context) {
  const auto query = context.tensor_argument("query", 0), value = context.tensor_argument("value", 1);
  if (!query || !value) context.invalid("it is called without a query or a value");
  const size_t key = context.tensor_argument("key", 2).value_or(*value);
  Operands of{context.input(*query), context.input(key), context.input(*value)};
  for (const V each : {of.query, of.key, of.value}) {
    if (context.rank(each) < 3 || context.rank(each) != context.rank(of.query))
      context.invalid("its inputs have shapes " + to_string(context.shape(of.query)) + " and " +
                      to_string(context.shape(each)));
  }
  of.query_mask = mask_of(context, "query_mask", *query);
  of.value_mask = mask_of(context, "value_mask", *value);
  if (key != *value) of.key_mask = mask_of(context, "key_mask", key);
  if (const auto given = context.tensor_argument("attention_mask", 6)) of.given_mask = context.raw(*given);
  of.is_causal = flag_argument(context, "use_causal_mask", 9);
  of.has_scores = flag_argument(context, "return_attention_scores", 7);
  static_cast<void>(context.argument("training", 8));
  return of;
}

AttentionAxes attention_axes_of(LayerContext& context, int64_t rank) {
  AttentionAxes axes;
  if (context.config().has("attention_axes")) {
    axes.along = context.config().list("attention_axes");
    for (int64_t& axis : axes.along) {
      if (axis < 0) axis += rank;
      if (axis < 1 || axis > rank - 2)
        context.unsupported("option attention_axes", "axis " + std::to_string(axis) + " is not implemented");
    }
  } else {
    for (int64_t axis = 1; axis < rank - 1; ++axis) axes.along.push_back(axis);
  }
  for (int64_t axis = 1; axis < rank - 1; ++axis)
    if (std::find(axes.along.begin(), axes.along.end(), axis) == axes.along.end()) axes.rest.push_back(axis);
  if (axes.along.empty() || axes.along.size() + axes.rest.size() + 2 != static_cast<size_t>(rank))
    context.invalid("option attention_axes has an axis twice");
  return axes;
}

ir::SymShape extents_along(const ir::SymShape& shape, const std::vector<int64_t>& axes) {
  ir::SymShape extents;
  for (const int64_t axis : axes) extents.push_back(shape[static_cast<size_t>(axis)]);
  return extents;
}

void append(ir::SymShape& to, const ir::SymShape& more) { to.insert(to.end(), more.begin(), more.end()); }

/// In the order batch, rest, along, features.
std::vector<int64_t> order_of(const AttentionAxes& axes) {
  std::vector<int64_t> order{0};
  order.insert(order.end(), axes.rest.begin(), axes.rest.end());
  order.insert(order.end(), axes.along.begin(), axes.along.end());
  order.push_back(static_cast<int64_t>(order.size()));
  return order;
}

/// x as [batch * rest,steps,features].
V with_steps(Compose& c, V x, const AttentionAxes& axes) {
  const ir::SymShape shape = c.shape(x);
  return c.reshape(c.transpose(x, order_of(axes)),
                   {shape[0] * num_elements(extents_along(shape, axes.rest)),
                    num_elements(extents_along(shape, axes.along)), shape.back()});
}

/// y [batch * rest,steps,features] with the axes that `like` has, but its own features.
V with_axes(Compose& c, V y, const ir::SymShape& like, const AttentionAxes& axes) {
  ir::SymShape to{like[0]};
  append(to, extents_along(like, axes.rest));
  append(to, extents_along(like, axes.along));
  to.push_back(c.shape(y)[2]);
  const std::vector<int64_t> order = order_of(axes);
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return c.transpose(c.reshape(y, to), back);
}

V both(Compose& c, V a, V b) {
  if (a == ir::kAbsent || b == ir::kAbsent) return a == ir::kAbsent ? b : a;
  return c.binary("and", a, b);
}

/// Which values no query may look ahead to: bool [query steps,value steps].
V causal_mask(Compose& c, const ir::SymInt& queries, const ir::SymInt& values) {
  return c.binary("greater_equal", c.positions(queries, 0, 2), c.positions(values, 1, 2));
}

/// What counts, as Keras has it: masks of steps along the first axis behind the batch and the given one, each
/// as it is, of any rank that meets the others; kAbsent: everything.
V merged_mask(LayerContext& context, const Operands& of, int64_t window) {
  Compose c(context);
  V mask = ir::kAbsent;
  if (of.query_mask != ir::kAbsent) mask = c.unsqueeze(of.query_mask, context.rank(of.query_mask));
  for (const V each : {of.value_mask, of.key_mask})
    if (each != ir::kAbsent) mask = both(c, mask, c.unsqueeze(each, context.rank(each) - 1));
  const ir::SymInt queries = c.shape(of.query)[1], values = c.shape(of.value)[1];
  if (of.is_causal) mask = both(c, mask, causal_mask(c, queries, values));
  if (window > 0) {
    const V apart = c.sub(c.positions(queries, 0, 2), c.positions(values, 1, 2));
    mask =
        both(c, mask, c.binary("less", c.unary("abs", apart), c.number(apart, static_cast<double>(window))));
  }
  return of.given_mask == ir::kAbsent ? mask : both(c, c.cast(of.given_mask, DType::kBool), mask);
}

/// What counts, of [batch * rest,heads,query steps,value steps], or what meets it; kAbsent: everything.
V joint_mask_of(LayerContext& context, const Operands& of, const AttentionAxes& axes, int64_t window) {
  Compose c(context);
  V mask = merged_mask(context, of, window);
  if (mask == ir::kAbsent) return mask;
  // Scores are of [batch,rest...,heads,query axes...,value axes...]: axes that the mask lacks are in front of
  // those of queries.
  const auto count = static_cast<int64_t>(axes.along.size()),
             rank = static_cast<int64_t>(axes.rest.size()) + 2 + 2 * count;
  if (context.rank(mask) < 2 * count || context.rank(mask) > rank)
    context.unsupported("argument attention_mask", "a mask of shape " + to_string(c.shape(mask)) +
                                                       " for queries of " + to_string(c.shape(of.query)) +
                                                       " is not implemented");
  while (context.rank(mask) < rank) mask = c.unsqueeze(mask, context.rank(mask) - 2 * count);
  if (rank == 4) return mask;
  const ir::SymShape query = c.shape(of.query);
  const ir::SymShape rest = extents_along(query, axes.rest), queries = extents_along(query, axes.along),
                     values = extents_along(c.shape(of.value), axes.along);
  const ir::SymInt heads = c.shape(mask)[axes.rest.size() + 1];
  ir::SymShape whole{query[0]};
  append(whole, rest);
  whole.push_back(heads);
  append(whole, queries);
  append(whole, values);
  return c.reshape(c.expand(mask, whole),
                   {query[0] * num_elements(rest), heads, num_elements(queries), num_elements(values)});
}

/// x [batch,steps,features] by a kernel [features,heads,width]: [batch,heads,steps,width].
V heads_of(LayerContext& context, V x, const Weights& weights, bool has_bias) {
  Compose c(context);
  const V kernel = context.weight_in(weights, "kernel", 0);
  const ir::Ints shape = context.weight_shape(kernel, 3, "a kernel");
  if (!demand(ir::Relation::kEqual, c.shape(x)[2], shape[0]))
    context.invalid("an input of shape " + to_string(c.shape(x)) + " for a kernel of shape " +
                    to_string(shape));
  V y = c.matmul(x, c.reshape(kernel, {shape[0], shape[1] * shape[2]}));
  if (has_bias) y = c.add(y, c.reshape(context.weight_in(weights, "bias", 1), {shape[1] * shape[2]}));
  const ir::SymShape own = c.shape(x);
  return c.transpose(c.reshape(y, {own[0], own[1], shape[1], shape[2]}), {0, 2, 1, 3});
}

/// Each head as often as there are queries' heads for it.
V repeated_heads(LayerContext& context, V x, int64_t count) {
  if (count == 1) return x;
  Compose c(context);
  const ir::SymShape shape = c.shape(x);
  const V wide = c.expand(c.unsqueeze(x, 2), {shape[0], shape[1], count, shape[2], shape[3]});
  return c.reshape(wide, {shape[0], shape[1] * count, shape[2], shape[3]});
}

struct Attended {
  V result, scores;
};

/// Of [batch,heads,steps,width] each. `zeroed`: what does not count is 0 in the end, as where nothing counts.
Attended attend(LayerContext& context, V query, V key, V value, V mask, double scale, bool zeroed) {
  Compose c(context);
  V scores = c.times(c.matmul(query, key, true), scale);
  if (mask != ir::kAbsent) {
    const double least = c.dtype(scores) == DType::kFloat16 ? 65504.0 : std::numeric_limits<float>::max();
    scores = c.where(mask, scores, c.number(scores, -0.7 * least));
  }
  scores = context.add("softmax", {scores}, {{"axis", int64_t{3}}});
  if (zeroed && mask != ir::kAbsent) scores = c.where(mask, scores, c.number(scores, 0));
  return {c.matmul(scores, value), scores};
}

/// [batch,heads,steps,width] by the kernel [heads,width,features].
V joined_heads(LayerContext& context, V x, const Weights& weights, bool has_bias) {
  Compose c(context);
  const V kernel = context.weight_in(weights, "kernel", 0);
  const ir::Ints shape = context.weight_shape(kernel, 3, "the output's kernel");
  const ir::SymShape own = c.shape(x);
  const V rows = c.reshape(c.transpose(x, {0, 2, 1, 3}), {own[0], own[2], context.product(own[1], own[3])});
  if (!demand(ir::Relation::kEqual, c.shape(rows)[2], shape[0] * shape[1]))
    context.invalid("heads of shape " + to_string(own) + " for a kernel of shape " + to_string(shape));
  const V y = c.matmul(rows, c.reshape(kernel, {shape[0] * shape[1], shape[2]}));
  return has_bias ? c.add(y, context.weight_in(weights, "bias", 1)) : y;
}

}  // namespace

// MultiHeadAttention and GroupQueryAttention.
void convert_multi_head_attention(LayerContext& context) {
  const LayerConfig& config = context.config();
  const bool is_grouped = context.class_name() != "MultiHeadAttention";
  const std::string mark = is_grouped ? "_" : "";
  for (const char* option : {"num_heads", "key_dim", "value_dim", "output_shape", "num_query_heads",
                             "num_key_value_heads", "head_dim", "query_shape", "value_shape", "key_shape"})
    config.skip(option);
  const bool has_bias = config.flag("use_bias", true);
  const Operands of = operands_of(context);
  const AttentionAxes axes = attention_axes_of(context, context.rank(of.query));
  Compose c(context);
  const V rows = with_steps(c, of.query, axes);
  const auto part = [&](const char* name, const char* attribute) {
    return context.weights().part(mark + attribute, name);
  };
  const V query = heads_of(context, rows, part("query", "query_dense"), has_bias);
  V key = heads_of(context, with_steps(c, of.key, axes), part("key", "key_dense"), has_bias);
  V value = heads_of(context, with_steps(c, of.value, axes), part("value", "value_dense"), has_bias);
  const ir::SymInt heads = c.shape(query)[1], width = c.shape(query)[3], own = c.shape(key)[1];
  if (own.hint() < 1 || heads.hint() % own.hint() != 0)
    context.invalid(to_string(heads) + " heads of queries for " + to_string(own) + " of keys");
  key = repeated_heads(context, key, heads.hint() / own.hint());
  value = repeated_heads(context, value, heads.hint() / own.hint());
  const V mask = joint_mask_of(context, of, axes, config.integer("sliding_window", 0));
  // Keras has a way without scores for one axis of steps, which leaves no trace of a mask where nothing
  // counts.
  const bool has_scores = of.has_scores || config.number("dropout", 0) > 0 || context.rank(of.query) != 3;
  Attended attended = attend(context, query, key, value, mask,
                             1.0 / std::sqrt(static_cast<double>(width.hint())), has_scores);
  if (config.flag("use_gate", false)) {
    // The one that Keras keeps under its own name alone.
    const V gate = heads_of(context, rows, context.weights().part("_gate_dense", "gate"), has_bias);
    attended.result = c.mul(attended.result, c.unary("sigmoid", gate));
  }
  const V joined = joined_heads(context, attended.result, part("attention_output", "output_dense"), has_bias);
  const ir::SymShape like = c.shape(of.query);
  context.add_output(with_axes(c, joined, like, axes), of.query_mask);
  if (!of.has_scores) return;
  ir::SymShape to{like[0]};
  append(to, extents_along(like, axes.rest));
  to.push_back(heads);
  append(to, extents_along(like, axes.along));
  append(to, extents_along(c.shape(of.value), axes.along));
  context.add_output(c.reshape(attended.scores, to));
}

namespace {

/// The sum over the features of weighted tanh(query + key): [batch,query steps,value steps].
V additive_scores(LayerContext& context, V query, V key, V before, V behind) {
  Compose c(context);
  V sum = c.add(c.unsqueeze(query, 2), c.unsqueeze(key, 1));
  if (before != ir::kAbsent) sum = c.mul(sum, before);
  sum = c.unary("tanh", sum);
  if (behind != ir::kAbsent) sum = c.mul(sum, behind);
  return c.reduce("reduce_sum", sum, {3}, false);
}

V scores_of(LayerContext& context, V query, V key) {
  const LayerConfig& config = context.config();
  Compose c(context);
  const bool has_scale = config.flag("use_scale", context.class_name() == "AdditiveAttention");
  const V scale = has_scale ? context.weight("scale", 0) : ir::kAbsent;
  if (context.class_name() == "AdditiveAttention") {
    config.skip("score_mode");
    return additive_scores(context, query, key, ir::kAbsent, scale);
  }
  const std::string mode = config.text("score_mode", "dot");
  if (mode == "dot") {
    const V scores = c.matmul(query, key, true);
    return has_scale ? c.mul(scores, scale) : scores;
  }
  if (mode != "concat") context.invalid("score_mode is \"" + mode + "\"");
  const V weight = context.weight("concat_score_weight", has_scale ? 1 : 0);
  return c.mul(additive_scores(context, query, key, scale, ir::kAbsent), weight);
}

}  // namespace

// Attention and AdditiveAttention: a list of query, value and, maybe, key.
void convert_attention(LayerContext& context) {
  const size_t count = context.num_inputs();
  if (count < 2 || count > 3) context.invalid("it is called with " + std::to_string(count) + " tensors");
  const V query = context.input(0), value = context.input(1), key = count == 3 ? context.input(2) : value;
  for (const V each : {query, value, key}) {
    if (context.rank(each) != 3) context.unsupported("input", "a rank other than 3 is not implemented");
  }
  Compose c(context);
  V scores = scores_of(context, query, key);
  const std::vector<V> masks = context.masks_argument("mask", 1, 2);
  V mask = ir::kAbsent;
  if (masks[1] != ir::kAbsent) mask = c.unsqueeze(masks[1], 1);
  const bool is_causal =
      flag_argument(context, "use_causal_mask", 4) || context.config().flag("causal", false);
  if (is_causal) mask = both(c, mask, causal_mask(c, c.shape(query)[1], c.shape(value)[1]));
  if (mask != ir::kAbsent) {
    const double most = c.dtype(scores) == DType::kFloat16 ? 65504.0 : 1e9;
    scores = c.where(mask, scores, c.minus(scores, most));
  }
  scores = context.add("softmax", {scores}, {{"axis", int64_t{2}}});
  V y = c.matmul(scores, value);
  if (masks[0] != ir::kAbsent) y = c.where(c.unsqueeze(masks[0], 2), y, c.number(y, 0));
  context.add_output(y, masks[0]);
  if (flag_argument(context, "return_attention_scores", 3)) context.add_output(scores);
}

}  // namespace tensormill::frontend::keras
