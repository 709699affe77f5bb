// The standard's Attention and RotaryEmbedding: heads side by side in the columns, or with an axis of their
// own.

#include "compiler/frontend/onnx/converters/attention/attend.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// The standard operator's mask as something to add: shorter rows mean that no later key is seen.
V mask_addend(NodeContext& context, V mask, const ir::SymInt& keys, V like) {
  Compose c(context);
  ir::SymShape shape = c.shape(mask);
  const bool fits = !shape.empty() && demand(ir::Relation::kLessEqual, shape.back(), keys);
  if (!fits || shape.size() > 4)
    context.invalid("attn_mask has shape " + to_string(shape) + " for " + to_string(keys) + " keys");
  const bool is_bool = c.dtype(mask) == DType::kBool;
  if (!is_proven(ir::Relation::kEqual, shape.back(), keys)) {
    const ir::SymInt axis = static_cast<int64_t>(shape.size()) - 1;
    shape.back() = keys - shape.back();
    mask = c.concat({mask, c.filled(c.dtype(mask), shape, is_bool ? 0 : kMinusInfinity)}, axis);
  }
  return is_bool ? addend_of(c, mask, like) : c.cast(mask, c.dtype(like));
}

/// Queries, keys and values as [B,heads,S,D], behind the keys and values of the past.
AttentionOperands attention_operands(NodeContext& context) {
  Compose c(context);
  AttentionOperands operands;
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
  return operands;
}

/// Adds that the keys behind nonpad_kv_seqlen are not seen; the valid lengths [B,1,1,1].
V add_lengths(NodeContext& context, AttentionOperands& operands) {
  Compose c(context);
  const ir::SymInt batch = c.shape(operands.q)[0], keys = c.shape(operands.k)[2];
  // A mask of three dims is one of each head, as without valid lengths; beside these, one of each batch
  // entry where it can be nothing else.
  if (operands.addend != ir::kAbsent && c.shape(operands.addend).size() == 3 &&
      c.shape(operands.addend)[0] == batch && c.shape(operands.addend)[0] != c.shape(operands.q)[1])
    operands.addend = c.unsqueeze(operands.addend, 1);
  const V lengths = integers_within(context, context.input(6), c.dims({keys}, {1}), "nonpad_kv_seqlen");
  const V valid = c.reshape(lengths, {batch, 1, 1, 1});
  operands.addend =
      added(c, operands.addend, addend_of(c, c.binary("less", c.positions(keys, 3, 4), valid), operands.q));
  return valid;
}

/// Adds that later keys are not seen, nor those further back than local_window_size; the window, -1 for none.
/// `valid` (add_lengths) may be kAbsent.
int64_t add_causal(NodeContext& context, AttentionOperands& operands, V valid) {
  Compose c(context);
  const V like = operands.q;
  const ir::SymInt queries = c.shape(like)[2], keys = c.shape(operands.k)[2];
  const int64_t window = context.int_attr("local_window_size", -1);
  if (window != -1 && window < 1) context.invalid("local_window_size is " + std::to_string(window));
  if (window < 0 && context.int_attr("is_causal", 0) == 0) return window;
  V before =
      c.reshape(context.extents({context.has_input(4) ? c.shape(context.input(4))[2] : ir::SymInt(0)}), {});
  if (!context.has_input(4) && valid != ir::kAbsent) before = c.sub(valid, c.dims({queries}, {}));
  operands.addend = added(c, operands.addend, causal_addend(c, queries, keys, before, like));
  if (window > 0)
    operands.addend = added(c, operands.addend, window_addend(c, queries, keys, before, window, like));
  return window;
}

/// x with zeros where `where` (may be kAbsent) holds.
V blinded(Compose& c, V x, V where) { return where == ir::kAbsent ? x : c.where(where, c.number(x, 0), x); }

/// The products of queries and keys in the stage that qk_matmul_output_mode asks for, where they are an
/// output.
void set_products(NodeContext& context, AttentionOperands& operands, V blind) {
  Compose c(context);
  const int64_t mode = context.int_attr("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) context.invalid("qk_matmul_output_mode is " + std::to_string(mode));
  if (context.num_outputs() <= 3 || context.node().outputs[3].empty()) return;
  if (mode == 3) operands.weights = blinded(c, operands.weights, blind);
  const V stages[] = {operands.products, operands.capped, operands.masked, operands.weights};
  context.set_output(3, c.cast(stages[mode], c.dtype(operands.q)));
}

}  // namespace

// Opset 23 and 24: queries of 3 or 4 dims, fewer heads of keys, a cache of past ones, or one whose valid
// lengths are given.
void convert_attention(NodeContext& context) {
  Compose c(context);
  AttentionOperands operands = attention_operands(context);
  if (context.has_input(3))
    operands.addend = mask_addend(context, context.input(3), c.shape(operands.k)[2], operands.q);
  const V valid = context.has_input(6) ? add_lengths(context, operands) : ir::kAbsent;
  const int64_t window = add_causal(context, operands, valid);
  operands.scale = context.float_attr("scale", 0);
  operands.softcap = context.float_attr("softcap", 0);
  if (context.has_attr("softmax_precision")) operands.precision = context.dtype_attr("softmax_precision");
  if (operands.precision && !is_float(*operands.precision))
    context.invalid("softmax_precision is no float type");
  V result = attend(context, operands);
  // Without a mask each query sees a key: the first, or those of the past.
  const V blind = context.has_input(3) || context.has_input(6) || window > 0
                      ? unseeing_queries(c, operands.addend)
                      : ir::kAbsent;
  const bool flat = context.rank(context.input(0)) == 3;
  if (!flat || (blind != ir::kAbsent && c.shape(blind)[1] != 1)) {
    result = blinded(c, result, blind);
    context.set_output(0, flat ? merge_heads(context, result) : result);
  } else {
    // Behind the heads' merging, so that the whole is still one attention.
    result = merge_heads(context, result);
    context.set_output(0, blinded(c, result, blind == ir::kAbsent ? blind : c.squeeze(blind, 1)));
  }
  context.set_output(1, operands.k);
  context.set_output(2, operands.v);
  set_products(context, operands, blind);
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

}  // namespace tensormill::frontend::onnx
