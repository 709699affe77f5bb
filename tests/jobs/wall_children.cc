// Children that try single walls. Some stand behind a filter of the test's own, put up before the walls are.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "server/jobs/child_main.h"
#include "tests/jobs/children.h"
#include "tests/jobs/probe.h"

namespace tensormill::jobs {
namespace {

using Arguments = std::span<const std::string>;

void load(std::vector<sock_filter> code) {
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
    throw_errno(errno, "cannot load the test's own filter");
}

constexpr sock_filter statement(uint16_t code, uint32_t value) { return {code, 0, 0, value}; }
constexpr sock_filter unless_equal(uint32_t value, uint8_t skip) {
  return {BPF_JMP | BPF_JEQ | BPF_K, 0, skip, value};
}

/// A call whose sixth argument is kProbe is not made: it is answered with kPassed, unless a filter that is
/// put up later refuses it. So every number can be tried, exit and fork among them.
void answer_probes() {
  constexpr uint32_t kSixth = offsetof(seccomp_data, args) + 5 * sizeof(uint64_t);
  load({statement(BPF_LD | BPF_W | BPF_ABS, kSixth), unless_equal(static_cast<uint32_t>(kProbe), 3),
        statement(BPF_LD | BPF_W | BPF_ABS, kSixth + 4), unless_equal(static_cast<uint32_t>(kProbe >> 32), 1),
        statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | kPassed),
        statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)});
}

/// As a kernel without that call.
void remove_call(uint32_t number) {
  load({statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), unless_equal(number, 1),
        statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)});
}

/// argument: [[number, five arguments]…]; the errno of each.
std::string probe(ChildChannel&, Arguments) {
  Json answers = Json::array();
  const auto calls = MappedFile::map(kFirstInheritedFd, "calls");
  for (const Json& call : parse_json(calls->text())) {
    const auto at = [&](size_t i) { return call.at(i).get<uint64_t>(); };
    errno = 0;
    const long result = ::syscall(static_cast<long>(at(0)), at(1), at(2), at(3), at(4), at(5), kProbe);
    answers.push_back(result < 0 ? errno : 0);
  }
  return answers.dump();
}

#if defined(__x86_64__)
/// getpid by the 32-bit interface.
std::string call_i386(ChildChannel&, Arguments) {
  long result = 20;
  asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  return std::to_string(result);
}

/// getpid by the x32 interface.
std::string call_x32(ChildChannel&, Arguments) { return std::to_string(::syscall(0x40000000 | SYS_getpid)); }
#endif

std::string say_ready(ChildChannel&, Arguments) { return "\"worked\""; }

/// Who the child is, and whether it can work where it is.
std::string who(ChildChannel&, Arguments) {
  const FileDescriptor memory(static_cast<int>(::syscall(SYS_memfd_create, "x", MFD_CLOEXEC)));
  const FileDescriptor again(
      ::open(("/proc/self/fd/" + std::to_string(memory.get())).c_str(), O_RDONLY | O_CLOEXEC));
  const FileDescriptor file(::open("made", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  Json json = {{"user", ::geteuid()}, {"group", ::getegid()}};
  json["memory_file"] = memory.valid() && again.valid();
  json["file"] = file.valid();
  return json.dump();
}

/// Takes shared anonymous memory of arguments[0], in steps of 16 MiB, for ever.
std::string eat_shared(ChildChannel&, Arguments arguments) {
  constexpr size_t kStep = size_t{16} << 20;
  const std::string text(kStep, 'x');
  while (true) {
    if (arguments[0] == "given") {
      write_all(kFirstInheritedFd, text, "a given file");
      continue;
    }
    if (arguments[0] == "written") {
      const int file = static_cast<int>(::syscall(SYS_memfd_create, "eaten", MFD_CLOEXEC));
      if (file < 0) throw_errno(errno, "memfd_create");
      write_all(file, text, "a memory file");
      continue;
    }
    void* const memory = ::mmap(nullptr, kStep, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw_errno(errno, "mmap");
    std::memset(memory, 1, kStep);
  }
}

/// Makes the kernel keep tables of pages for memory that is read alone, of which no page is the child's own;
/// for ever.
std::string eat_page_tables(ChildChannel&, Arguments) {
  constexpr size_t kMapped = size_t{32} << 30, kStep = size_t{2} << 20;  // a page of a table for each step
  while (true) {
    void* const memory =
        ::mmap(nullptr, kMapped, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw_errno(errno, "mmap");
    for (size_t at = 0; at < kMapped; at += kStep)
      (void)*static_cast<const volatile char*>(static_cast<char*>(memory) + at);
  }
}

/// What opening files answers: 0 or the errno. arguments[0]: one outside, of this user.
std::string try_files(ChildChannel&, Arguments arguments) {
  const auto opened = [](const char* path, int flags) {
    const FileDescriptor file(::open(path, flags | O_CLOEXEC, 0600));
    return file.valid() ? 0 : errno;
  };
  return Json{{"outside", opened("/etc/passwd", O_RDONLY)},
              {"overwrite", opened(arguments[0].c_str(), O_WRONLY | O_TRUNC)},
              {"inside", opened("file", O_RDWR | O_CREAT)}}
      .dump();
}

/// What Landlock alone answers: 0 or the errno. arguments[0]: a file outside, of this user.
std::string try_landlock(ChildChannel&, Arguments arguments) {
  const auto result = [](auto value) { return value < 0 ? errno : 0; };
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in nobody{};
  nobody.sin_family = AF_INET;
  nobody.sin_port = htons(9);
  nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Json json;
  json["truncate"] = result(::truncate(arguments[0].c_str(), 0));
  json["connect"] =
      result(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&nobody), sizeof(nobody)));
  json["kill"] = result(::kill(::getppid(), 0));
  return json.dump();
}

}  // namespace

void run_wall_child(const std::string& command, int argc, char** argv) {
  const std::map<std::string, ChildBody> bodies = {
    {"child-probe", probe},
    {"child-no-landlock", say_ready},
    {"child-no-seccomp", say_ready},
    {"child-ready", say_ready},
    {"child-who", who},
    {"child-shared-memory", eat_shared},
    {"child-page-tables", eat_page_tables},
    {"child-files", try_files},
    {"child-landlock-alone", try_landlock},
#if defined(__x86_64__)
    {"child-call-i386", call_i386},
    {"child-call-x32", call_x32},
#endif
  };
  const auto body = bodies.find(command);
  if (body == bodies.end()) return;
  if (command == "child-probe") answer_probes();
  if (command == "child-no-landlock") remove_call(SYS_landlock_create_ruleset);
  if (command == "child-no-seccomp" || command == "child-landlock-alone") remove_call(SYS_seccomp);
  run_child(argc, argv, body->second);
}

}  // namespace tensormill::jobs
