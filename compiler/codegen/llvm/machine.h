/// LLVM's code generators, of which callers include the headers. Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string>

#include "compiler/codegen/llvm/target_traits.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace tensormill::codegen {

/// Of position-independent code. Throws Error(kNotSupported) for a target that this library lacks.
std::unique_ptr<llvm::TargetMachine> make_machine(const TargetTraits& traits);
/// The module's object file.
std::string write_object(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tensormill::codegen
