/// What is computed in another way in another region of a tensor (inside a pad and on it, in one operand of a
/// concatenation or the next): the regions as loops of their own, in which no index needs to be clamped.
/// Thread-safety: pure functions.
#pragma once

#include <optional>

#include "compiler/te/simplify.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::schedule {

/// A select by axes. Inside is where `rows` holds and the last axis is in [begin, end).
struct RowParts {
  te::Expr rows;        ///< over the other axes; null: everywhere
  te::Expr begin, end;  ///< over no axes; null: where the axis begins, or ends
  te::Expr inside, outside;

  bool cuts_rows() const { return begin || end; }
};

/// Nothing where `body` is no select, or its condition is of something else than ends of axes. `context`:
/// what it shows to hold is left out of the condition.
std::optional<RowParts> row_parts_of(const te::Expr& body, const std::vector<te::Axis>& axes,
                                     const te::BoundsContext& context);

}  // namespace tensormill::schedule
