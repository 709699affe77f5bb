#include "compiler/codegen/backend.h"

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
  std::string version() const override { return llvm_version(); }
};

}  // namespace

std::unique_ptr<Backend> make_llvm_backend() { return std::make_unique<LlvmBackend>(); }

}  // namespace tensormill::codegen
