/// What host steps share to read their operands. A plan may be a stranger's: what no compiler writes is
/// Error(kInvalidPackage). Thread-safety: pure functions.
#pragma once

#include <vector>

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// Throws unless the call has these numbers of operands.
void expect(const HostCall& call, size_t inputs, size_t outputs);
/// Output `index`, which has `count` elements of `bytes` each.
void* storage(const HostCall& call, size_t index, size_t count, size_t bytes);
int64_t* integers(const HostCall& call, size_t index, int64_t count);
/// The operand's elements, aligned.
Tensor copied(const TensorView& view);
/// Attribute axis, inside of `rank`.
size_t axis_of(const HostCall& call, size_t rank);
/// Attribute axes, or the one axis, inside of `rank`.
std::vector<size_t> axes_of(const HostCall& call, size_t rank);

}  // namespace tensormill::host_ops
