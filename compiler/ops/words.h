/// Words: int32 elements that stand for four 8-bit ones side by side, the first in the lowest byte. Products
/// of words (te's dot4) add the products of four unsigned bytes of data and four signed bytes of weights.
/// Thread-safety: pure functions.
#pragma once

#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops {

inline constexpr int64_t kBytesPerWord = 4;

/// Attribute `words` (bool, 0): the operands are words. Fails unless they are int32 exactly then.
bool read_words(const ir::Attrs& attrs, DType dtype);
/// Operand types of an operator that takes floats or, with attribute `words`, words.
inline constexpr DTypeSet kFloatsOrWords = kFloats | set_of(DType::kInt32);

/// The product of one element of data and one of weights.
Expr product_of(bool words, const Expr& data, const Expr& weight);

/// The bytes of `words` [..., n] as float64 [..., n, 4].
Tensor bytes_of_words(const Tensor& words, bool is_signed);
/// `evaluate` on float64 operands {data, weights, bias or null}; what it gives, as int32.
void evaluate_as_integers(const ir::ReferenceContext& context, const Tensor& data, const Tensor& weights,
                          void (*evaluate)(const ir::ReferenceContext&));

}  // namespace tensormill::ops
