#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

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

/// What is written into a pipe, collected by a thread until its write end is closed.
class Collector {
public:
  Collector() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw_errno(errno, "pipe2");
    read_end_ = FileDescriptor(ends[0]);
    write_end_ = FileDescriptor(ends[1]);
    thread_ = std::thread([this] { collect(); });
  }
  ~Collector() { finish(); }
  const FileDescriptor& write_end() const { return write_end_; }
  /// Closes the write end and waits for the rest.
  void finish() {
    write_end_ = FileDescriptor();
    if (thread_.joinable()) thread_.join();
  }
  const std::string& bytes() const { return bytes_; }

private:
  void collect() {
    char chunk[65536];
    while (true) {
      const ssize_t count = read(read_end_.get(), chunk, sizeof(chunk));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      bytes_.append(chunk, static_cast<size_t>(count));
    }
  }

  FileDescriptor read_end_;
  FileDescriptor write_end_;
  std::string bytes_;
  std::thread thread_;
};

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
  FileDescriptor file = make_memory_file("objects");
  write_all(file.get(), bytes, "archive of kernels");
  return file;
}

}  // namespace

/// lld reads and writes files by name. The objects are a memory file; the output is a pipe, because a regular
/// file would be written beside its name first. So nothing touches a file system but /proc.
std::string link_objects(const std::vector<Object>& objects, const target::Target& target) {
  const FileDescriptor input =
      archive_of(objects.empty() ? std::vector{placeholder_object(target)} : objects);
  Collector output;
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
                                   path_of(output.write_end()),
                                   "--whole-archive",
                                   path_of(input)};
  std::vector<const char*> arguments;
  for (const std::string& arg : args) arguments.push_back(arg.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  output.finish();
  TM_CHECK(result.retCode == 0, "the linker refused the kernels: " + messages);
  TM_CHECK(!output.bytes().empty(), "the linker wrote nothing: " + messages);
  return output.bytes();
}

}  // namespace tensormill::codegen
