#include "server/jobs/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "runtime/base/error_json.h"
#include "runtime/base/json.h"
#include "server/jobs/child_main.h"
#include "server/jobs/confine.h"
#include "server/jobs/pipe.h"

namespace tensormill::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Above all numbers that the child sees, so that a dup2 never lands on a source.
constexpr int kSourceFdBase = 512;
/// How often the parent looks at what a child holds: what it can take meanwhile is a tenth of a second's
/// worth.
constexpr milliseconds kMemoryCheck{100};
/// Between the bound of a child's private memory, at which an allocation fails and the child says so, and
/// that of its control group, which also counts what the kernel keeps for it.
constexpr uint64_t kGroupSlack = uint64_t{64} << 20;
constexpr size_t kMaxLineBytes = size_t{4} << 20;

void check_spawn(int rc, const char* what) {
  if (rc != 0) throw_errno(rc, std::string("cannot start a child: ") + what);
}

/// posix_spawn's two option objects.
struct SpawnOptions {
  SpawnOptions() {
    check_spawn(::posix_spawn_file_actions_init(&actions), "actions");
    check_spawn(::posix_spawnattr_init(&attributes), "attributes");
  }
  ~SpawnOptions() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;

  /// Own group, default signals, nothing blocked.
  void set_attributes() {
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    check_spawn(::posix_spawnattr_setsigmask(&attributes, &none), "signal mask");
    check_spawn(::posix_spawnattr_setsigdefault(&attributes, &all), "signals");
    check_spawn(::posix_spawnattr_setpgroup(&attributes, 0), "process group");
    check_spawn(::posix_spawnattr_setflags(
                    &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF),
                "flags");
  }

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

FileDescriptor duplicate_high(int fd) {
  FileDescriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, kSourceFdBase));
  if (!copy.valid()) throw_errno(errno, "cannot duplicate descriptor " + std::to_string(fd));
  return copy;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

ChildLimits limits_of(const ChildSpec& spec) {
  ChildLimits limits = spec.limits;
  if (spec.policy == nullptr) return limits;
  limits.require_confinement = limits.require_confinement || spec.policy->require_confinement;
  if (limits.user == 0) limits.user = spec.policy->user;
  return limits;
}

/// So that a child of another user can make files there.
void give_folder(const ChildSpec& spec, const ChildLimits& limits) {
  const bool makes_files = (needs_of(limits.kind) & kMakesFiles) != 0;
  if (!limits.confine || limits.user == 0 || !makes_files || spec.folder.empty()) return;
  if (::chown(spec.folder.c_str(), limits.user, limits.user) != 0)
    throw_errno(errno, "cannot give " + spec.folder + " to user " + std::to_string(limits.user));
}

}  // namespace

ChildProcess::ChildProcess(const ChildSpec& spec)
    : limits_(limits_of(spec)),
      policy_(spec.policy),
      time_limit_(spec.time_limit),
      started_(steady_clock::now()),
      output_left_(spec.max_output_bytes) {
  TM_CHECK(!limits_.confine || needs_of(limits_.kind) == 0 || limits_.data_bytes != 0,
           "a child without a bound of memory: " + spec.command);
  auto [life_line_read, life_line_write] = make_pipe();
  auto [channel_read, channel_write] = make_pipe();
  if (::fcntl(channel_read.get(), F_SETFL, O_NONBLOCK) != 0) throw_errno(errno, "cannot set up a pipe");
  give_folder(spec, limits_);
  // It holds its files as the user that it becomes.
  if (limits_.data_bytes != 0)
    memory_.emplace(limits_.data_bytes, spec.descriptors, limits_.confine ? limits_.user : 0);
  if (limits_.data_bytes != 0 && policy_ && policy_->cgroups)
    group_ = policy_->cgroups->make(limits_.data_bytes + kGroupSlack);
  spawn(spec, life_line_read.get(), channel_write.get());
  // What it has taken by now, while it is loaded, counts for the server.
  if (group_ && !group_->add(pid_)) group_.reset();
  // The child would do so too, but a tenth of a second of loading and relocating later.
  lower_priority(pid_, spec.limits.nice);
  life_line_ = std::move(life_line_write);
  channel_ = std::move(channel_read);
  pidfd_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd_.valid()) {
    const int error_number = errno;
    kill_group();
    ::waitpid(pid_, nullptr, 0);
    throw_errno(error_number, "cannot watch a child");
  }
}

void ChildProcess::spawn(const ChildSpec& spec, int life_line_end, int channel_end) {
  SpawnOptions options;
  options.set_attributes();
  const FileDescriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) throw_errno(errno, "cannot open /dev/null");
  const int log = spec.log_fd >= 0 ? spec.log_fd : null.get();
  std::vector<int> wanted = {null.get(), log, log, life_line_end, channel_end};
  for (const int descriptor : spec.descriptors) wanted.push_back(descriptor);
  std::vector<FileDescriptor> sources;
  for (size_t i = 0; i < wanted.size(); ++i) {
    sources.push_back(duplicate_high(wanted[i]));
    check_spawn(
        ::posix_spawn_file_actions_adddup2(&options.actions, sources.back().get(), static_cast<int>(i)),
        "descriptors");
  }
  // Whatever this process forgot to mark close-on-exec does not pass either.
  check_spawn(::posix_spawn_file_actions_addclosefrom_np(&options.actions, static_cast<int>(wanted.size())),
              "close");
  if (!spec.folder.empty()) {
    check_spawn(::posix_spawn_file_actions_addchdir_np(&options.actions, spec.folder.c_str()), "folder");
  }
  std::vector<std::string> words = {"tensormill", spec.command, to_text(limits_)};
  words.insert(words.end(), spec.arguments.begin(), spec.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string locale = "LC_ALL=C";
  std::array<char*, 2> environment = {locale.data(), nullptr};
  check_spawn(::posix_spawn(&pid_, spec.program.c_str(), &options.actions, &options.attributes, argv.data(),
                            environment.data()),
              "posix_spawn");
}

ChildProcess::~ChildProcess() {
  if (reaped_) return;
  kill_group();
  reap([](const std::string&, const std::string&) {});
}

void ChildProcess::kill_group() {
  // The group keeps its number while its leader is not reaped.
  ::kill(-pid_, SIGKILL);
}

void ChildProcess::cancel() {
  const std::lock_guard lock(mutex_);
  if (reaped_) return;
  cancelled_ = true;
  kill_group();
}

std::optional<ChildOutcome> ChildProcess::poll(milliseconds timeout, const EventSink& on_event) {
  TM_CHECK(!reaped_, "the child is gone already");
  const auto end = steady_clock::now() + timeout;
  while (true) {
    const auto left = std::max(std::chrono::ceil<milliseconds>(end - steady_clock::now()), milliseconds(0));
    milliseconds wait = left;
    if (memory_ && !out_of_memory_) {
      const auto look_in = std::chrono::ceil<milliseconds>(next_look_ - steady_clock::now());
      wait = std::clamp(look_in, milliseconds(0), wait);
    }
    if (time_limit_.count() > 0 && !timed_out_) {
      const auto time_left = std::chrono::ceil<milliseconds>(time_limit_ - running_time());
      wait = std::clamp(time_left, milliseconds(0), wait);
    }
    std::array<pollfd, 2> watched = {pollfd{pidfd_.get(), POLLIN, 0}, pollfd{channel_.get(), POLLIN, 0}};
    // A channel that has ended is not watched: it would be ready for ever.
    const int ready = ::poll(watched.data(), channel_.valid() ? 2 : 1, static_cast<int>(wait.count()));
    if (ready < 0 && errno != EINTR) throw_errno(errno, "cannot wait for a child");
    if (channel_.valid() && watched[1].revents != 0 && !read_channel(on_event)) channel_ = FileDescriptor();
    check_limits();
    if ((watched[0].revents & POLLIN) != 0) return reap(on_event);
    if (ready != 0 || steady_clock::now() >= end) return std::nullopt;
  }
}

void ChildProcess::check_limits() {
  if (reaped_) return;
  if (!protocol_error_.empty()) kill_group();
  if (time_limit_.count() > 0 && !timed_out_ && running_time() >= time_limit_) {
    timed_out_ = true;
    kill_group();
  }
  // Another limit than the kernel's own on private memory, which a child meets as a failed allocation.
  if (is_past_memory()) {
    out_of_memory_ = true;
    kill_group();
  }
}

bool ChildProcess::is_past_memory() {
  if (!memory_ || out_of_memory_ || steady_clock::now() < next_look_) return false;
  next_look_ = steady_clock::now() + kMemoryCheck;
  return memory_->is_past(pid_);
}

void ChildProcess::forgive_given_files() {
  if (memory_) memory_->forgive_given();
}

void ChildProcess::pause() {
  const std::lock_guard lock(mutex_);
  if (reaped_ || paused_since_) return;
  paused_since_ = steady_clock::now();
  ::kill(-pid_, SIGSTOP);
}

void ChildProcess::resume() {
  const std::lock_guard lock(mutex_);
  if (reaped_ || !paused_since_) return;
  paused_ += steady_clock::now() - *std::exchange(paused_since_, std::nullopt);
  ::kill(-pid_, SIGCONT);
}

steady_clock::duration ChildProcess::running_time() {
  const std::lock_guard lock(mutex_);
  const auto now = steady_clock::now();
  return now - started_ - paused_ - (paused_since_ ? now - *paused_since_ : steady_clock::duration(0));
}

bool ChildProcess::read_channel(const EventSink& on_event) {
  std::string buffer(size_t{64} << 10, '\0');
  // Bounded work a call, so that a chatty child does not keep the caller from its heartbeat.
  for (int round = 0; round < 16; ++round) {
    const ssize_t got = ::read(channel_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got < 0) throw_errno(errno, "cannot read from a child");
    if (got == 0) return false;
    if (static_cast<uint64_t>(got) > output_left_) {
      protocol_error_ = "the child wrote too much";
      return false;
    }
    output_left_ -= static_cast<uint64_t>(got);
    partial_line_.append(buffer, 0, static_cast<size_t>(got));
    size_t start = 0;
    for (size_t end = partial_line_.find('\n'); end != std::string::npos;
         end = partial_line_.find('\n', start)) {
      take_line(std::string_view(partial_line_).substr(start, end - start), on_event);
      start = end + 1;
    }
    partial_line_.erase(0, start);
    if (partial_line_.size() > kMaxLineBytes) protocol_error_ = "the child wrote a line that does not end";
    if (!protocol_error_.empty()) return false;
  }
  return true;
}

void ChildProcess::take_line(std::string_view line, const EventSink& on_event) {
  if (!protocol_error_.empty()) return;
  std::string type;
  std::string data;
  try {
    const Json json = parse_json(line);
    type = json.at("type").get<std::string>();
    data = canonical_json(json.at("data"));
    if (type == "error") reported_ = error_from_json(json.at("data"));
    if (type == "confined" && policy_ && policy_->on_confined)
      policy_->on_confined(limits_.kind, confinement_from_text(json.at("data").get<std::string>()));
  } catch (const Error& error) {
    protocol_error_ = std::string("the child wrote a bad line: ") + error.what();
  } catch (const Json::exception&) {
    protocol_error_ = "the child wrote a line of the wrong form";
  }
  if (!protocol_error_.empty()) return;
  if (type == "result") {
    result_ = std::move(data);
  } else if (type != "error") {
    on_event(type, data);
  }
}

ChildOutcome ChildProcess::reap(const EventSink& on_event) {
  // What it wrote before it went; a survivor of its group may hold the pipe open, so this never waits.
  while (channel_.valid() && read_channel(on_event)) {
    pollfd more{channel_.get(), POLLIN, 0};
    if (::poll(&more, 1, 0) <= 0) break;
  }
  channel_ = FileDescriptor();
  int status = 0;
  rusage usage{};
  bool cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    kill_group();
    while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) continue;
    reaped_ = true;
    cancelled = cancelled_;
  }
  // Orphans of the group are ours when this process is the subreaper.
  while (::waitpid(-pid_, nullptr, 0) > 0 || errno == EINTR) continue;
  const double cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  if (group_) {
    out_of_memory_ = out_of_memory_ || (WIFSIGNALED(status) && group_->was_out_of_memory());
    group_.reset();
  }
  ChildOutcome outcome = classify(status, cpu_seconds);
  if (cancelled && outcome.end == ChildEnd::kSignal) {
    outcome.end = ChildEnd::kCancelled;
    outcome.error = Error(ErrorCode::kCancelled, "the work was cancelled");
  }
  outcome.cpu_seconds = cpu_seconds;
  outcome.max_resident_bytes = int64_t{usage.ru_maxrss} * 1024;
  return outcome;
}

ChildOutcome ChildProcess::classify(int status, double cpu_seconds) const {
  const auto outcome = [](ChildEnd end, ErrorCode code, const std::string& message) {
    ChildOutcome value;
    value.end = end;
    value.error = Error(code, message);
    return value;
  };
  if (!protocol_error_.empty())
    return outcome(ChildEnd::kInternalError, ErrorCode::kInternal, protocol_error_);
  if (timed_out_) {
    return outcome(ChildEnd::kTimeout, ErrorCode::kDeadlineExceeded,
                   "the child ran longer than " + std::to_string(time_limit_.count()) + " ms");
  }
  const std::string too_much =
      "the child needs more than " + std::to_string(limits_.data_bytes) + " bytes of memory";
  if (out_of_memory_) return outcome(ChildEnd::kOutOfMemory, ErrorCode::kMemoryBudget, too_much);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    // A child that ignores SIGXCPU is killed a second later.
    const bool spent = limits_.cpu_seconds != 0 && cpu_seconds >= static_cast<double>(limits_.cpu_seconds);
    if (signal == SIGXCPU || (signal == SIGKILL && spent)) {
      return outcome(ChildEnd::kCpuLimit, ErrorCode::kDeadlineExceeded,
                     "the child used more than " + std::to_string(limits_.cpu_seconds) + " s of CPU time");
    }
    ChildOutcome value =
        outcome(ChildEnd::kSignal, ErrorCode::kJobFailed,
                "the child was ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")");
    value.signal = signal;
    return value;
  }
  const int code = WEXITSTATUS(status);
  if (code == kExitOk && !result_.empty()) {
    ChildOutcome value;
    value.end = ChildEnd::kOk;
    value.result = result_;
    return value;
  }
  if (code == kExitUserError && reported_) {
    ChildOutcome value;
    value.end = ChildEnd::kUserError;
    value.error = reported_;
    return value;
  }
  if (code == kExitOutOfMemory) {
    return outcome(ChildEnd::kOutOfMemory, ErrorCode::kMemoryBudget, too_much);
  }
  if (code == kExitInternalError && reported_) {
    return outcome(ChildEnd::kInternalError, ErrorCode::kInternal, reported_->message());
  }
  return outcome(ChildEnd::kInternalError, ErrorCode::kInternal,
                 "the child ended with code " + std::to_string(code) + " and no result");
}

void become_subreaper() {
  // An emulator of processes knows no such option: what a child leaves behind there goes to the first
  // process.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 && errno != EINVAL)
    throw_errno(errno, "cannot become the subreaper");
}

}  // namespace tensormill::jobs
