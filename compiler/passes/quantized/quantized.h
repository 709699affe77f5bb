/// What quantized graphs are made of, as the importer writes them: a dequantized value is
/// (cast(q) - zero) * scale in float32. Thread-safety: pure functions.
#pragma once

#include <optional>

#include "compiler/ir/graph.h"

namespace tensormill::passes {

/// (q - zero) * scale with one zero point and one scale.
struct Dequantized {
  ir::ValueId q = ir::kAbsent;  ///< int8 or uint8
  double zero = 0;
  float scale = 1;
};
std::optional<Dequantized> match_dequantized(const ir::Graph& graph, ir::ValueId value);

/// q - zero in float32 or int32, or q itself, of one zero point that may be known at run time alone.
struct Centered {
  ir::ValueId q = ir::kAbsent;        ///< int8 or uint8
  ir::ValueId zero = ir::kAbsent;     ///< one element of the result's type
  std::optional<int64_t> known = {};  ///< the zero point, where it is constant
};
std::optional<Centered> match_centered(const ir::Graph& graph, ir::ValueId value);

/// Constant integers as w - offset[i], with w in int8 and one offset for each index i of an axis. Bytes less
/// a zero point that is not their middle need one.
struct OffsetBytes {
  Tensor w;
  std::optional<Tensor> offset;  ///< int32 [extent of the axis]; nothing where all are 0
};
/// Nothing where the integers of an index differ by more than 255.
std::optional<OffsetBytes> match_bytes(const ir::Graph& graph, ir::ValueId value, size_t axis);

/// Constant weights as (w - offset) * scale, the zero points taken off: one scale or one for each index of
/// `axis`.
struct DequantizedWeights {
  OffsetBytes bytes;
  Tensor scale;  ///< float32 [extent of the axis]
};
std::optional<DequantizedWeights> match_weights(const ir::Graph& graph, ir::ValueId value, size_t axis);

/// A constant float32 vector [count] that is added to products: q * unit[i] with q of int32 (scale `unit`
/// within rounding), or any values.
struct DequantizedBias {
  std::optional<Tensor> integer;  ///< int32: the multiples of the unit
  Tensor value;                   ///< float32
};
std::optional<DequantizedBias> match_bias(const ir::Graph& graph, ir::ValueId value, const Tensor& unit);

}  // namespace tensormill::passes
