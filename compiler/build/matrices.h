/// Square matrices x [...,n,n]. Errors: Error(kInvalidModel) for other shapes. Thread-safety: as the builder.
#pragma once

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// [...]
ir::ValueId determinants(OpBuilder& builder, ir::ValueId x);
/// By the cofactors, in float64: matrices are small where models invert them. UnsupportedForm for more than
/// 32 rows.
ir::ValueId inverses(OpBuilder& builder, ir::ValueId x);

}  // namespace tensormill::build
