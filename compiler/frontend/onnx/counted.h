/// What converters do with axes whose extent depends on data (data_extents.h): values that are read beyond
/// their own element are filled behind their count, results get a new count. Thread-safety: as the context.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/frontend/onnx/converter.h"

namespace tensormill::frontend::onnx {

/// x of numbers or bools, its elements behind the counts replaced as fill_behind says ("zero", "lowest" ...);
/// the result is as large as its shape. x itself where no axis of it depends on data.
ir::ValueId filled_behind(NodeContext& context, ir::ValueId x, const char* with);
/// The same where the axis that depends on data is `axis`; x itself elsewhere.
ir::ValueId filled_along(NodeContext& context, ir::ValueId x, int64_t axis, const char* with);
/// What `compute` makes of x, whose elements depend on others along `axis`: filled as filled_along says, and
/// with the same count.
ir::ValueId with_count(NodeContext& context, ir::ValueId x, int64_t axis, const char* with,
                       const std::function<ir::ValueId(ir::ValueId)>& compute);
/// x with `more` zeros behind it along `axis`.
ir::ValueId longer_by(NodeContext& context, ir::ValueId x, int64_t more, int64_t axis);
/// In a sample, whose extents stand for any, a result of up to so many elements is stored at this extent, its
/// operand made longer: the less of it and a free extent would be no formula.
inline constexpr int64_t kMaxPadded = int64_t{1} << 16;
/// The first `count` (i64 [1]) elements of x along `axis`: that axis depends on data from here on.
ir::ValueId take_first(NodeContext& context, ir::ValueId x, ir::ValueId count, int64_t axis);
/// The parts one behind the other along `axis`, what is there of them moved together.
ir::ValueId counted_concat(NodeContext& context, std::vector<ir::ValueId> parts, int64_t axis);
/// x in a shape of as many elements. Axes that depend on data may be merged with their neighbours: what is
/// there of them is moved together.
ir::ValueId counted_reshape(NodeContext& context, ir::ValueId x, const Shape& shape);
/// The count of `axis` of x as i64 [1], a constant where no data decides; nothing where that cannot be told.
std::optional<ir::ValueId> count_along(NodeContext& context, ir::ValueId x, int64_t axis);

/// An integer that says how large something is: `most`, or what a run works out within [least, most].
struct BoundedInt {
  int64_t most = 0;
  ir::ValueId count = ir::kAbsent;  ///< an integer tensor of one element, or kAbsent: it is `most`
  int64_t least = 0;
  bool is_known() const { return count == ir::kAbsent; }
};
/// The integers of operand `index`; throws ValueRequired where one is neither known nor bounded.
std::vector<BoundedInt> bounded_ints(NodeContext& context, size_t index, const char* what);
/// The same of an operand of one element; throws Error(kInvalidModel) for another number of them.
BoundedInt bounded_int(NodeContext& context, size_t index, const char* what);
/// bounded_int, where the model may say it as the lesser of a number and `extent`: in a sample, whose extents
/// stand for any, a run works it out within [0, that number].
BoundedInt capped_int(NodeContext& context, size_t index, const char* what, int64_t extent);
/// A shape of which the run may work out some extents: `extents` at their largest.
struct BoundedShape {
  Shape extents;
  std::vector<std::pair<size_t, BoundedInt>> open;  ///< by axis
};
/// Operand `index` as a shape; throws ValueRequired where an extent is not bounded.
BoundedShape bounded_shape(NodeContext& context, size_t index);
/// Whether a number is the count of axis `axis` of x.
bool is_count_of(NodeContext& context, const BoundedInt& number, ir::ValueId x, int64_t axis);
/// As i64 [1].
ir::ValueId as_count(NodeContext& context, const BoundedInt& number);

}  // namespace tensormill::frontend::onnx
