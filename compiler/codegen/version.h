/// The library that makes machine code, as the compiler's id names it. Thread-safety: pure function.
#pragma once

#include <string>

namespace tensormill::codegen {

/// Name and version of its library for the compiler id, "llvm 19.1.7"; loads nothing.
std::string llvm_version();

}  // namespace tensormill::codegen
