/// Code generation: functions at te::Level::kCodegen to objects, and objects to the package's mod.so.
/// Thread-safety: emit and load may be called from many threads at once; what links (link, static_bundle,
/// shared_bundle) once per process at a time.
#pragma once

#include <memory>
#include <span>
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

class JitLibrary;
struct BundleParts;

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
  /// See JitLibrary::load.
  virtual std::unique_ptr<JitLibrary> load(const Object& object) const = 0;
  /// See bundle.h.
  virtual std::string static_bundle(const BundleParts& parts) const = 0;
  virtual std::string shared_bundle(const BundleParts& parts, const std::string& soname,
                                    std::span<const std::string> libraries) const = 0;
};

/// The back end of the module tensormill-llvm, which the first call loads: LLVM's library takes longer to
/// load than all else of a process, and most processes make no code. Throws Error(kNotSupported) where the
/// module is not installed; a confined child loads it before its walls are up.
std::unique_ptr<Backend> make_llvm_backend();

}  // namespace tensormill::codegen
