#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/Object/ObjectFile.h>

#include <cstring>

#include "compiler/codegen/llvm/module.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {
namespace {

/// Kernels are closed: whatever is looked up outside of them does not exist.
class NoSymbols : public llvm::JITSymbolResolver {
public:
  void lookup(const LookupSet& symbols, OnResolvedFunction on_resolved) override {
    if (symbols.empty()) return on_resolved(LookupResult());
    on_resolved(llvm::make_error<llvm::StringError>("undefined symbol " + symbols.begin()->str(),
                                                    llvm::inconvertibleErrorCode()));
  }
  llvm::Expected<LookupSet> getResponsibilitySet(const LookupSet&) override { return LookupSet(); }
};

class RuntimeDyldLibrary : public JitLibrary {
public:
  explicit RuntimeDyldLibrary(const Object& object) : linker_(memory_, symbols_) {
    auto file =
        llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object.bytes, object.symbol));
    if (!file) throw InternalError("object " + object.symbol + ": " + llvm::toString(file.takeError()));
    linker_.loadObject(**file);
    linker_.resolveRelocations();
    linker_.registerEHFrames();
    std::string message;
    const bool failed = memory_.finalizeMemory(&message);
    if (linker_.hasError()) message = linker_.getErrorString().str();
    TM_CHECK(!failed && !linker_.hasError(), "object " + object.symbol + ": " + message);
  }

  tm_kernel kernel(const std::string& symbol) const override {
    const llvm::JITEvaluatedSymbol found = linker_.getSymbol(symbol);
    TM_CHECK(found.getAddress() != 0, "no kernel " + symbol);
    tm_kernel result = nullptr;
    const uint64_t address = found.getAddress();
    std::memcpy(&result, &address, sizeof(result));
    return result;
  }

private:
  llvm::SectionMemoryManager memory_;
  NoSymbols symbols_;
  llvm::RuntimeDyld linker_;
};

}  // namespace

std::unique_ptr<JitLibrary> load_object(const Object& object) {
  return std::make_unique<RuntimeDyldLibrary>(object);
}

}  // namespace tensormill::codegen
