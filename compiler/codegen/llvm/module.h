/// From loop IR to object bytes: the steps of Backend::emit.
/// Thread-safety: pure functions; each call has its own LLVMContext.
#pragma once

#include <string>

#include "compiler/codegen/backend.h"

namespace tensormill::codegen {

/// Backend::emit of the LLVM back end.
Object emit_object(const te::Function& function, const target::Target& target, const EmitOptions& options);
/// Backend::link: see link.cc.
std::string link_objects(const std::vector<Object>& objects, const target::Target& target);
/// "llvm 19.1.7"
std::string llvm_version();

}  // namespace tensormill::codegen
