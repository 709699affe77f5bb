/// Python's pickles, looked at without running anything: a pickle is a program that may call any function, so
/// that nothing here does what it says. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensormill::frontend::wire {

/// The names that the pickle at the start of `bytes` imports, "module.name", each once, at most 1,000 of
/// them. Throws Error(kInvalidModel) with the byte for what is no opcode, or passes the end before the last
/// one.
std::vector<std::string> pickle_imports(std::string_view bytes);

}  // namespace tensormill::frontend::wire
