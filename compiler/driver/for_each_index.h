/// Independent pieces of work on several threads. Thread-safety: a pure function.
#pragma once

#include <cstddef>
#include <functional>

namespace tensormill::driver {

/// work(0) ... work(count - 1), on up to `threads` threads of which the caller's is one. No piece begins
/// after one has thrown; of those that did, the exception of the lowest index is thrown here.
void for_each_index(size_t count, int threads, const std::function<void(size_t index)>& work);

}  // namespace tensormill::driver
