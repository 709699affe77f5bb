#include "server/report/program_run.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/memory_file.h"

namespace tensormill::report {

namespace {

constexpr int64_t kMaxOutput = int64_t{256} << 20;

std::string content(int fd) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  if (size < 0) throw_errno(errno, "cannot read what a run printed");
  if (size > kMaxOutput) throw Error(ErrorCode::kTooLarge, "a run printed more than 256 MiB");
  std::string text(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_errno(errno, "cannot read what a run printed");
    done += static_cast<size_t>(got);
  }
  return text;
}

/// Descriptors of a child: nothing to read, and two files to write.
class Streams {
public:
  Streams(int out, int err) {
    check(::posix_spawn_file_actions_init(&actions_));
    check(::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
    check(::posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO));
    check(::posix_spawn_file_actions_adddup2(&actions_, err, STDERR_FILENO));
  }
  ~Streams() { ::posix_spawn_file_actions_destroy(&actions_); }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }
  static void check(int error_number) {
    if (error_number != 0) throw_errno(error_number, "cannot start a run of the program");
  }

private:
  posix_spawn_file_actions_t actions_;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

ProgramRun run_program(const std::string& program, const std::vector<std::string>& arguments) {
  const FileDescriptor out = memory_file("run-out");
  const FileDescriptor err = memory_file("run-err");
  std::string name = "tensormill";
  std::vector<std::string> words = arguments;
  std::vector<char*> argv = {name.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const Streams streams(out.get(), err.get());
  const auto start = std::chrono::steady_clock::now();
  pid_t pid = -1;
  Streams::check(::posix_spawn(&pid, program.c_str(), streams.get(), nullptr, argv.data(), environ));
  int status = 0;
  rusage usage = {};
  while (::wait4(pid, &status, 0, &usage) < 0) {
    if (errno != EINTR) throw_errno(errno, "cannot wait for a run of the program");
  }
  ProgramRun run;
  run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  run.max_resident_bytes = int64_t{usage.ru_maxrss} * 1024;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.out = content(out.get());
  run.err = content(err.get());
  return run;
}

}  // namespace tensormill::report
