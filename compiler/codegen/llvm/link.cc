#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/codegen/llvm/linker.h"
#include "compiler/codegen/llvm/module.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {
namespace {

/// A model that only renames or reshapes its inputs has no kernel, but its package has a library like any
/// other.
Object placeholder_object(const target::Target& target) {
  te::Function function;
  function.name = "no_kernels";
  function.body = te::make_seq({});
  return emit_object(function, target, {});
}

/// One file holds all objects, so that a network of any number of kernels needs one descriptor.
FileDescriptor archive_of(const std::vector<Object>& objects) {
  std::vector<llvm::NewArchiveMember> members;
  for (const Object& object : objects)
    members.emplace_back(llvm::MemoryBufferRef(object.bytes, object.symbol));
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  llvm::Error error =
      llvm::writeArchiveToStream(stream, members, llvm::SymtabWritingMode::NoSymtab,
                                 llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false);
  TM_CHECK(!error, "the kernels do not become an archive: " + llvm::toString(std::move(error)));
  return memory_file("archive of kernels", bytes);
}

}  // namespace

std::string link_objects(const std::vector<Object>& objects, const target::Target& target) {
  const FileDescriptor input =
      archive_of(objects.empty() ? std::vector{placeholder_object(target)} : objects);
  return link_shared(target, {"-soname", "mod.so", "--whole-archive", path_of(input)});
}

}  // namespace tensormill::codegen
