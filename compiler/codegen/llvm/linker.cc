#include "compiler/codegen/llvm/linker.h"

#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "compiler/target/features.h"
#include "runtime/base/error.h"

LLD_HAS_DRIVER(elf)

namespace tensormill::codegen {
namespace {

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

}  // namespace

FileDescriptor memory_file(const char* name, std::string_view bytes) {
  FileDescriptor file(memfd_create(name, MFD_CLOEXEC));
  if (!file.valid()) throw_errno(errno, "memfd_create");
  write_all(file.get(), bytes, name);
  return file;
}

std::string path_of(const FileDescriptor& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

std::string link_shared(const target::Target& target, const std::vector<std::string>& arguments) {
  Collector output;
  const bool arm = target::arch_of(target.triple) == "aarch64";
  std::vector<std::string> all = {"ld.lld",
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
                                  "-o",
                                  path_of(output.write_end())};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<const char*> words;
  for (const std::string& word : all) words.push_back(word.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const lld::Result result = lld::lldMain(words, stream, stream, {{lld::Gnu, &lld::elf::link}});
  output.finish();
  TM_CHECK(result.retCode == 0, "the linker refused the objects: " + messages);
  TM_CHECK(!output.bytes().empty(), "the linker wrote nothing: " + messages);
  return output.bytes();
}

}  // namespace tensormill::codegen
