/// Machine code as text. Thread-safety: pure functions.
#pragma once

#include <string>

namespace llvm {
class TargetMachine;
}

namespace tensormill::codegen {

/// The assembly of a relocatable object made for `machine`: its functions in the order of their addresses,
/// with labels where branches lead and, behind an instruction, the symbol that the linker puts in; then its
/// constants. Reading the finished code takes a fraction of the time of a second code generation. Throws
/// InternalError for bytes that are no such object.
std::string disassemble(const std::string& object, const llvm::TargetMachine& machine);

}  // namespace tensormill::codegen
