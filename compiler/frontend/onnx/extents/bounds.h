/// Integers that say how large something is, and that a run works out: known ones, and those that the graph
/// bounds. Thread-safety: as the context.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

/// An integer that says how large something is: `most`, or what a run works out within [least, most].
struct BoundedInt {
  ir::SymInt most = 0;
  ir::ValueId count = ir::kAbsent;  ///< an integer tensor, or kAbsent: it is `most`
  ir::SymInt least = 0;
  int64_t element = 0;  ///< of the count, which has one, or is a vector
  bool is_known() const { return count == ir::kAbsent; }
};
using BoundedInts = std::optional<std::vector<BoundedInt>>;
/// The integers of a small value, by the nodes that they come from; nothing where one is not bounded.
BoundedInts bounds_of(const NodeContext& context, ir::ValueId value);
/// The integers of a small value where each follows from what is known: of a shape, say, of which data
/// decides other extents. Nothing where one does not.
std::optional<ir::SymShape> static_ints(const NodeContext& context, ir::ValueId value);
/// The integers of operand `index`; throws ValueRequired where one is neither known nor bounded.
std::vector<BoundedInt> bounded_ints(NodeContext& context, size_t index, const char* what);
/// The same of a value of one element. `low`: what the graph has made sure that it is not below.
BoundedInt bounded_value(NodeContext& context, ir::ValueId value, const char* what,
                         std::optional<int64_t> low = std::nullopt);
/// The same of an operand of one element; throws Error(kInvalidModel) for another number of them.
BoundedInt bounded_int(NodeContext& context, size_t index, const char* what);
/// bounded_int, of which no more counts than `extent`: what nothing else bounds is bounded by that.
BoundedInt capped_int(NodeContext& context, size_t index, const char* what, const ir::SymInt& extent);
/// A shape of which the run may work out some extents: `extents` at their largest.
struct BoundedShape {
  ir::SymShape extents;
  std::vector<std::pair<size_t, BoundedInt>> open;  ///< by axis
};
/// Operand `index` as a shape; throws ValueRequired where an extent is not bounded.
BoundedShape bounded_shape(NodeContext& context, size_t index);
/// Whether a number is the count of axis `axis` of x.
bool is_count_of(NodeContext& context, const BoundedInt& number, ir::ValueId x, int64_t axis);
/// As i64 [1].
ir::ValueId as_count(NodeContext& context, const BoundedInt& number);

}  // namespace tensormill::frontend::onnx
