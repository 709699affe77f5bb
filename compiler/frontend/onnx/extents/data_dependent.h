/// What converters do with axes whose extent depends on data (data_extents.h): values that are read beyond
/// their own element are filled behind their count, results get a new count. Thread-safety: as the context.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/frontend/onnx/extents/bounds.h"

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
ir::ValueId longer_by(NodeContext& context, ir::ValueId x, const ir::SymInt& more, int64_t axis);
/// The first `count` (i64 [1]) elements of x along `axis`: that axis depends on data from here on.
ir::ValueId take_first(NodeContext& context, ir::ValueId x, ir::ValueId count, int64_t axis);
/// The same of what has zeros behind the count, and no fewer elements.
ir::ValueId take_zeroed(NodeContext& context, ir::ValueId x, ir::ValueId count, int64_t axis);
/// The parts one behind the other along `axis`, what is there of them moved together.
ir::ValueId data_dependent_concat(NodeContext& context, std::vector<ir::ValueId> parts, int64_t axis);
/// x in a shape of as many elements. Axes that depend on data may be merged with their neighbours: what is
/// there of them is moved together.
ir::ValueId data_dependent_reshape(NodeContext& context, ir::ValueId x, const ir::SymShape& shape);
/// The count of `axis` of x as i64 [1], a constant where no data decides; nothing where that is not known.
std::optional<ir::ValueId> count_along(NodeContext& context, ir::ValueId x, int64_t axis);

}  // namespace tensormill::frontend::onnx
