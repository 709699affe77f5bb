/// Host steps on the growing buffers of the executor that runs them: which one says attribute "buffer". Each
/// hands on numbers that say how much is there, so that the steps' order follows from what they read.
/// Thread-safety: as the buffers.
#pragma once

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// i64 row [1], parts... -> row + 1: part i is row `row` of buffer "buffer" + i, behind which there is none.
/// Throws Error(kTensorData) where the rows before have another size, Error(kMemoryBudget).
void append_growing(const HostCall& call);
/// x, what has read the buffer so far... -> i64 [rank], the extents of x, which is what is there from now on.
/// Throws Error(kMemoryBudget).
void set_growing(const HostCall& call);
/// i64 numbers of the step before, an iteration's number (i64, one element) and an initial value (both
/// optional) -> the buffer's bytes, or, where no iteration was before, the initial value. Throws
/// Error(kTensorData) where they are not as many as the result's.
void take_growing(const HostCall& call);

}  // namespace tensormill::host_ops
