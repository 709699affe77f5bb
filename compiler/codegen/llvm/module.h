/// What LlvmBackend is made of: from loop IR to object bytes, and from those to libraries.
/// Thread-safety: pure functions; each call has its own LLVMContext.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "compiler/codegen/backend.h"
#include "compiler/codegen/bundle.h"
#include "compiler/codegen/jit.h"

namespace tensormill::codegen {

/// Backend::emit of the LLVM back end.
Object emit_object(const te::Function& function, const target::Target& target, const EmitOptions& options);
/// Backend::link: see link.cc.
std::string link_objects(const std::vector<Object>& objects, const target::Target& target);
/// Backend::load: see jit.cc.
std::unique_ptr<JitLibrary> load_object(const Object& object);
/// Backend::static_bundle and shared_bundle: see bundle.cc.
std::string bundle_archive(const BundleParts& parts);
std::string bundle_library(const BundleParts& parts, const std::string& soname,
                           std::span<const std::string> libraries);

}  // namespace tensormill::codegen
