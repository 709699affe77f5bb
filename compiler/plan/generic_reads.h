/// What the loops of a generic nest ask of an element before they load it. Thread-safety: pure functions.
#pragma once

#include "compiler/te/simplify.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::plan {

/// Whether the context shows that the index is in [0, bound).
bool is_within(const te::Expr& index, const te::Expr& bound, const te::BoundsContext& context);
/// Whether the select's condition is of places alone, and no data that it leaves out say what is read: then
/// loads of what it chooses may have the condition as their mask.
bool can_mask(const te::ExprNode& select);

}  // namespace tensormill::plan
