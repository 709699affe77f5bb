/// Products of operands that are summed over letters of an equation. Thread-safety: as the builder.
#pragma once

#include <string>
#include <vector>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// "ij,jk->ik" of as many operands, "..." for the axes that have no letter. Throws Error(kInvalidModel) for
/// an equation that does not fit them.
ir::ValueId einsum(OpBuilder& builder, std::string equation, const std::vector<ir::ValueId>& operands);

}  // namespace tensormill::build
