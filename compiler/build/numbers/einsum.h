/// Products of operands that are summed over letters of an equation. Thread-safety: as the builder.
#pragma once

#include <string>
#include <vector>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// "ij,jk->ik" of as many operands of one dtype, which the result has, "..." for the axes that have no
/// letter. Axes of an operand that have one letter become its diagonal: their extents are equal, of free ones
/// as a guard. Those of several operands are equal, or 1. Throws Error(kInvalidModel) for an equation that
/// does not fit the operands.
ir::ValueId einsum(OpBuilder& builder, std::string equation, const std::vector<ir::ValueId>& operands);

}  // namespace tensormill::build
