// What the module tensormill-llvm.so gives: LLVM and lld, which nothing else here links.
#include "compiler/codegen/backend.h"
#include "compiler/codegen/bundle.h"
#include "compiler/codegen/jit.h"
#include "compiler/codegen/llvm/module.h"

namespace tensormill::codegen {
namespace {

class LlvmBackend : public Backend {
public:
  Object emit(const te::Function& function, const target::Target& target,
              const EmitOptions& options) const override {
    return emit_object(function, target, options);
  }
  std::string link(const std::vector<Object>& objects, const target::Target& target) const override {
    return link_objects(objects, target);
  }
  std::unique_ptr<JitLibrary> load(const Object& object) const override { return load_object(object); }
  std::string static_bundle(const BundleParts& parts) const override { return bundle_archive(parts); }
  std::string shared_bundle(const BundleParts& parts, const std::string& soname,
                            std::span<const std::string> libraries) const override {
    return bundle_library(parts, soname, libraries);
  }
};

}  // namespace
}  // namespace tensormill::codegen

/// Passes the object to its caller.
extern "C" [[gnu::visibility("default")]] tensormill::codegen::Backend* tensormill_make_llvm_backend() {
  return std::make_unique<tensormill::codegen::LlvmBackend>().release();
}
