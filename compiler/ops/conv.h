/// The reference evaluation of conv, for operators that are conv in another layout. Thread-safety: a pure
/// function.
#pragma once

#include "compiler/ir/op_def.h"

namespace tensormill::ops {

/// Inputs x [N,C,spatial...], w [M,C/group,kernel...], bias [M] (may be null); attributes as conv.
/// Accumulates in double with the blocked product of gemm.h.
void conv_reference(const ir::ReferenceContext& context);

}  // namespace tensormill::ops
