#include "compiler/codegen/backend.h"

#include "compiler/codegen/bundle.h"
#include "compiler/codegen/jit.h"
#include "compiler/codegen/version.h"
#include "runtime/base/module.h"

namespace tensormill::codegen {

std::unique_ptr<Backend> make_llvm_backend() {
  using Make = Backend* (*)();
  // Once: a confined child does not find files by name.
  static const auto make =
      reinterpret_cast<Make>(load_module("tensormill-llvm", "tensormill_make_llvm_backend"));
  return std::unique_ptr<Backend>(make());
}

std::string llvm_version() { return "llvm " TM_LLVM_VERSION; }

std::unique_ptr<JitLibrary> JitLibrary::load(const Object& object) {
  return make_llvm_backend()->load(object);
}

std::string static_bundle(const BundleParts& parts) { return make_llvm_backend()->static_bundle(parts); }

std::string shared_bundle(const BundleParts& parts, const std::string& soname,
                          std::span<const std::string> libraries) {
  return make_llvm_backend()->shared_bundle(parts, soname, libraries);
}

}  // namespace tensormill::codegen
