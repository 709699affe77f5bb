#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "compiler/codegen/llvm/linker.h"
#include "compiler/codegen/llvm/machine.h"
#include "compiler/codegen/llvm/module.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {
namespace {

/// Of the C interface: an archive that stays where it is.
constexpr const char* kOpenStatic = "tm_package_load_static";
/// Members of the archive start at pages of their own where the archive does.
constexpr uint64_t kArchiveAlignment = 4096;

/// The archive as read-only data, and entry(package) { return tm_package_load_static(data, size, package); }
std::string package_object(const BundleParts& parts) {
  const std::unique_ptr<llvm::TargetMachine> machine = make_machine(traits_of(parts.target));
  llvm::LLVMContext context;
  llvm::Module module("bundle", context);
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);

  const llvm::StringRef bytes(reinterpret_cast<const char*>(parts.archive.data()), parts.archive.size());
  llvm::Constant* data = llvm::ConstantDataArray::getString(context, bytes, /*AddNull=*/false);
  llvm::GlobalVariable* global =
      llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal("package", data->getType()));
  global->setInitializer(data);
  global->setConstant(true);
  global->setLinkage(llvm::GlobalValue::PrivateLinkage);
  global->setAlignment(llvm::Align(kArchiveAlignment));

  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* size = llvm::Type::getInt64Ty(context);
  llvm::Type* code = llvm::Type::getInt32Ty(context);
  const llvm::FunctionCallee open =
      module.getOrInsertFunction(kOpenStatic, llvm::FunctionType::get(code, {pointer, size, pointer}, false));
  llvm::Function* entry = llvm::Function::Create(llvm::FunctionType::get(code, {pointer}, false),
                                                 llvm::GlobalValue::ExternalLinkage, parts.entry, module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", entry));
  llvm::Value* arguments[] = {global, builder.getInt64(parts.archive.size()), entry->getArg(0)};
  builder.CreateRet(builder.CreateCall(open, arguments));
  std::string message;
  llvm::raw_string_ostream stream(message);
  TM_CHECK(!llvm::verifyModule(module, &stream), "bundle: " + message);
  return write_object(module, *machine);
}

}  // namespace

std::string bundle_archive(const BundleParts& parts) {
  if (parts.archive.size() > kMaxBundledBytes)
    throw Error(ErrorCode::kNotSupported,
                "a package of " + std::to_string(parts.archive.size()) + " bytes is larger than the " +
                    std::to_string(kMaxBundledBytes) + " that are linked into a program: open it as a file");
  const std::string package = package_object(parts);
  std::vector<llvm::NewArchiveMember> members;
  members.emplace_back(llvm::MemoryBufferRef(package, "package.o"));
  // LLVM reads an object where it lies, which must be aligned as its numbers are.
  const auto runtime =
      llvm::MemoryBuffer::getMemBufferCopy({parts.runtime.data(), parts.runtime.size()}, "runtime.o");
  members.emplace_back(runtime->getMemBufferRef());
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  llvm::Error error =
      llvm::writeArchiveToStream(stream, members, llvm::SymtabWritingMode::NormalSymtab,
                                 llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false);
  TM_CHECK(!error, "the bundle does not become an archive: " + llvm::toString(std::move(error)));
  return bytes;
}

std::string bundle_library(const BundleParts& parts, const std::string& soname,
                           std::span<const std::string> libraries) {
  const FileDescriptor input = memory_file("bundle", bundle_archive(parts));
  std::vector<std::string> arguments = {
      "-soname",         soname,         "-Bsymbolic",         "--gc-sections",
      "--whole-archive", path_of(input), "--no-whole-archive", "--as-needed"};
  arguments.insert(arguments.end(), libraries.begin(), libraries.end());
  return link_shared(parts.target, arguments);
}

}  // namespace tensormill::codegen
