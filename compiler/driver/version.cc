#include "compiler/driver/version.h"

#include "compiler/codegen/version.h"
#include "compiler_sources.h"

namespace tensormill::driver {

std::string compiler_version() { return "0.1.0"; }

std::string code_generator() { return "tensormill " + compiler_version() + ", " + codegen::llvm_version(); }

std::string compiler_build() {
  return "tensormill " + compiler_version() + " (" TM_COMPILER_SOURCES "), " + codegen::llvm_version();
}

}  // namespace tensormill::driver
