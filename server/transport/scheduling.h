/// How a thread shares the processors with others. Both apply to the calling thread alone, do nothing where
/// the kernel does not allow it, and are hints: no answer depends on them. Slices are those of SCHED_OTHER,
/// which Linux has from 6.12 on: a thread that wakes up takes the processor at once from one of a longer
/// slice, where it waits for the next tick (4 ms of a kernel of 250 Hz) otherwise.
#pragma once

namespace tensormill::transport {

/// For what runs long and is waited for by few: `nice`, from -20 to 19, and the longest slice.
void give_way(int nice);

/// For what runs for microseconds and is waited for by all: a short slice.
void take_precedence();

}  // namespace tensormill::transport
