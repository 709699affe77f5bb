/// The time of a clock that never goes back. Thread-safety: pure function.
#pragma once

#include <chrono>

namespace tensormill::bench {

/// In seconds, from a beginning that stays.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tensormill::bench
