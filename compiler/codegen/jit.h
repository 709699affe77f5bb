/// Objects loaded into this process without a file or a linker: for checking a kernel while it is compiled
/// and for tests. The objects must be for the machine that runs this; loading code is a decision of the
/// caller. Thread-safety: load on one thread; afterwards symbols may be used from many. Kernels live as long
/// as the library.
#pragma once

#include <memory>
#include <string>

#include "compiler/codegen/backend.h"
#include "runtime/abi/kernel_abi.h"

namespace tensormill::codegen {

class JitLibrary {
public:
  /// Throws InternalError when the object cannot be loaded or has undefined symbols.
  static std::unique_ptr<JitLibrary> load(const Object& object);
  virtual ~JitLibrary() = default;
  /// The kernel named `symbol`; throws InternalError when there is none.
  virtual tm_kernel kernel(const std::string& symbol) const = 0;
};

}  // namespace tensormill::codegen
