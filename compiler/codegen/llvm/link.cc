#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compiler/codegen/llvm/module.h"
#include "compiler/target/features.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

LLD_HAS_DRIVER(elf)

namespace tensormill::codegen {
namespace {

FileDescriptor make_memory_file(const char* name) {
  FileDescriptor file(memfd_create(name, MFD_CLOEXEC));
  if (!file.valid()) throw_errno(errno, "memfd_create");
  return file;
}

std::string path_of(const FileDescriptor& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

std::string contents_of(const FileDescriptor& file) {
  const off_t size = lseek(file.get(), 0, SEEK_END);
  if (size < 0) throw_errno(errno, "the linked object");
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        pread(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_errno(errno, "the linked object");
    done += static_cast<size_t>(count);
  }
  return bytes;
}

}  // namespace

/// lld reads and writes files by name; memory files keep all of it in this process.
std::string link_objects(const std::vector<Object>& objects, const target::Target& target) {
  std::vector<FileDescriptor> inputs;
  for (const Object& object : objects) {
    inputs.push_back(make_memory_file("object"));
    write_all(inputs.back().get(), object.bytes, object.symbol);
  }
  const FileDescriptor output = make_memory_file("mod.so");
  const bool arm = target::arch_of(target.triple) == "aarch64";
  std::vector<std::string> args = {"ld.lld",
                                   "-m",
                                   arm ? "aarch64linux" : "elf_x86_64",
                                   "-shared",
                                   "--threads=1",
                                   "--build-id=none",
                                   "--no-undefined",
                                   "--hash-style=gnu",
                                   "-z",
                                   "noexecstack",
                                   "-z",
                                   "relro",
                                   "-z",
                                   "now",
                                   "--strip-all",
                                   "--no-mmap-output-file",
                                   "-soname",
                                   "mod.so",
                                   "-o",
                                   path_of(output)};
  for (const FileDescriptor& input : inputs) args.push_back(path_of(input));
  std::vector<const char*> arguments;
  for (const std::string& arg : args) arguments.push_back(arg.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  TM_CHECK(result.retCode == 0, "the linker refused the kernels: " + messages);
  return contents_of(output);
}

}  // namespace tensormill::codegen
