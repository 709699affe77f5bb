/// What all attention operators share: heads, caches, masks as addends, rotated positions, and attention
/// itself (Vaswani et al., "Attention Is All You Need", 2017, section 3.2).
/// B: batch, S: queries, T: keys, D: columns of a head. Thread-safety: as the context.
#pragma once

#include <limits>
#include <optional>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

/// What is added to the score of a key that is not seen.
inline constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// [B,S,heads*D] as [B,heads,S,D].
ir::ValueId split_heads(NodeContext& context, ir::ValueId x, int64_t heads);
/// [B,heads,S,D] as [B,S,heads*D].
ir::ValueId merge_heads(NodeContext& context, ir::ValueId x);
/// x [B,a divisor of `heads`,T,D] with `heads` of them: each serves several queries.
ir::ValueId repeat_heads(NodeContext& context, ir::ValueId x, const ir::SymInt& heads);
/// Q K^T of each head, times `scale`, or times 1/sqrt(D) where that is 0.
ir::ValueId scaled_products(NodeContext& context, ir::ValueId q, ir::ValueId k, double scale);
/// `past` and `present` along the axis of the sequence.
ir::ValueId appended(NodeContext& context, ir::ValueId past, ir::ValueId present);
/// 0 where `allowed`, minus infinity elsewhere, in the type of `like`.
ir::ValueId addend_of(Compose& c, ir::ValueId allowed, ir::ValueId like);
/// A query at i sees the keys up to i + `before`, an integer or a tensor of them.
ir::ValueId causal_addend(Compose& c, const ir::SymInt& queries, const ir::SymInt& keys, ir::ValueId before,
                          ir::ValueId like);
/// Only the last `window` of the keys that a causal query sees.
ir::ValueId window_addend(Compose& c, const ir::SymInt& queries, const ir::SymInt& keys, ir::ValueId before,
                          int64_t window, ir::ValueId like);
/// Which queries [.., S, 1] see no key: nothing but minus infinity is added to their scores.
ir::ValueId unseeing_queries(Compose& c, ir::ValueId addend);
/// b where a is kAbsent, and the other way round; else their sum.
ir::ValueId added(Compose& c, ir::ValueId a, ir::ValueId b);

struct AttentionOperands {
  ir::ValueId q, k, v;               ///< [B,heads,S,D], [B,heads or a divisor,T,D], [.., T,Dv]
  ir::ValueId addend = ir::kAbsent;  ///< broadcasts to [B,heads,S,T]
  ir::ValueId sink = ir::kAbsent;    ///< [1,heads,1,1]: the score of a key that has no value
  double scale = 0;                  ///< of the products of queries and keys; 0 for 1/sqrt(D)
  double softcap = 0;
  std::optional<DType> precision;      ///< of the softmax, where it is not that of the products
  ir::ValueId products = ir::kAbsent;  ///< set: scaled products
  ir::ValueId capped = ir::kAbsent;    ///< set: after the soft cap
  ir::ValueId masked = ir::kAbsent;    ///< set: after the addend
  ir::ValueId weights = ir::kAbsent;   ///< set: after the softmax
};

/// What attention computes in: products of narrow floats are past their largest where the scaled ones are
/// not.
DType attended_as(DType dtype);
/// softmax(softcap(Q K^T * scale) + addend) V, of Q's dtype; what is set is of `attended_as` that.
ir::ValueId attend(NodeContext& context, AttentionOperands& operands);
/// What position ids choose from a cache: [B or 1,1,S,D/2].
ir::ValueId chosen_angles(NodeContext& context, ir::ValueId cache, ir::ValueId position_ids, ir::ValueId x);
/// Pairs of elements turned by their position's angle (Su et al., "RoFormer", 2021, section 3.2.2); x
/// [B,heads,S,D].
ir::ValueId rotated(NodeContext& context, ir::ValueId x, ir::ValueId cosines, ir::ValueId sines,
                    int64_t turned, bool interleaved);

}  // namespace tensormill::frontend::onnx
