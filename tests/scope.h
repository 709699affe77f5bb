/// How much a test program does: the gate samples what is much of one kind, a sweep
/// (`TM_TEST_SCOPE=sweep`) does it all. tests/tools/scope.py says the same of Python tests.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace tensormill {

inline bool is_sweep() {
  const char* scope = std::getenv("TM_TEST_SCOPE");
  return scope != nullptr && std::string_view(scope) == "sweep";
}

/// The step through cases that are alike.
inline uint64_t stride(uint64_t gate, uint64_t sweep) { return is_sweep() ? sweep : gate; }

}  // namespace tensormill
