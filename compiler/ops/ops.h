/// The standard operators: everything that a graph may contain besides "fused". ops.def lists the families;
/// each family's file holds type rule, reference evaluation, tensor expression and documentation of its
/// operators. Thread-safety: the registry is immutable.
#pragma once

#include "compiler/ir/op_def.h"

namespace tensormill::ops {

/// All operators of ops.def.
const ir::OpRegistry& standard_ops();

}  // namespace tensormill::ops
