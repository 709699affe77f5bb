/// Code generation: functions at te::Level::kCodegen to objects, and objects to the package's mod.so.
/// Thread-safety: emit may be called from many threads at once; link once per process at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/target/target.h"
#include "compiler/te/stmt.h"
#include "runtime/base/digest.h"

namespace tensormill::codegen {

/// One relocatable object with one global symbol, the kernel. Deterministic: equal text and target, equal
/// bytes.
struct Object {
  std::string symbol;
  std::string bytes;
  std::string ir_text;        ///< "ll", when asked for
  std::string assembly_text;  ///< "asm", when asked for
};

struct EmitOptions {
  bool keep_ir = false;
  bool keep_assembly = false;
};

class Backend {
public:
  virtual ~Backend() = default;
  /// Throws InternalError when the code generator refuses its own input, Error(kNotSupported) for a target
  /// that the library lacks.
  virtual Object emit(const te::Function& function, const target::Target& target,
                      const EmitOptions& options) const = 0;
  /// Links the objects, in order, into an ELF shared object without needed libraries or undefined symbols;
  /// one link of a process at a time (lld keeps state).
  virtual std::string link(const std::vector<Object>& objects, const target::Target& target) const = 0;
  /// Name and version for the compiler id: "llvm 19.1.7".
  virtual std::string version() const = 0;
};

std::unique_ptr<Backend> make_llvm_backend();

}  // namespace tensormill::codegen
