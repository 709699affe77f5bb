/// A child process of the own binary, as its parent sees it: started without fork, in its own process group
/// and an empty folder, with nothing but the descriptors that are passed; gone, with all that it may have
/// started, when the object is. Thread-safety: poll belongs to one thread, the one that made the object (the
/// kernel ties the child's life to that thread); cancel may be called from any.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/jobs/child_cgroups.h"
#include "server/jobs/confine.h"
#include "server/jobs/limits.h"
#include "server/jobs/memory_watch.h"

namespace tensormill::jobs {

struct ChildSpec {
  std::string command;                 ///< hidden subcommand of the own binary
  std::vector<std::string> arguments;  ///< after the limits
  std::vector<int> descriptors;  ///< become kFirstInheritedFd … ; borrowed until the start has returned
  std::string folder;            ///< its working folder
  int log_fd = -1;               ///< its standard output and error; -1: /dev/null
  ChildLimits limits;
  std::shared_ptr<const ChildPolicy> policy = {};  ///< of all children of the server; none: as `limits` say
  std::chrono::milliseconds time_limit{0};         ///< wall time; 0: none
  uint64_t max_output_bytes = uint64_t{64} << 20;  ///< on the channel, all lines together
  std::string program = "/proc/self/exe";
};

enum class ChildEnd {
  kOk,
  kUserError,      ///< it reported an Error
  kInternalError,  ///< it reported a bug, or broke the protocol
  kOutOfMemory,
  kCpuLimit,
  kTimeout,
  kSignal,     ///< it crashed, or someone else killed it
  kCancelled,  ///< by cancel()
};

struct ChildOutcome {
  ChildEnd end = ChildEnd::kInternalError;
  std::string result;          ///< JSON, when ok
  std::optional<Error> error;  ///< set unless ok; its code tells the ends apart
  int signal = 0;              ///< when kSignal
  double cpu_seconds = 0;
  int64_t max_resident_bytes = 0;
};

class ChildProcess {
public:
  /// Throws Error(kIo) when it cannot be started.
  /// InternalError for a child that reads or runs what a stranger made and has no bound of memory.
  explicit ChildProcess(const ChildSpec& spec);
  /// Kills and reaps what still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Kills the whole group at once; poll then ends with kCancelled (unless the end came first).
  void cancel();
  /// Stops the whole group where it is, and lets it go on. The time between does not count against the time
  /// limit. From any thread.
  void pause();
  void resume();
  /// Closes the life line: a sound child ends by itself.
  void close_life_line() { life_line_ = FileDescriptor(); }
  /// Ends the child where it is past a limit that its parent watches: for who does other work between two
  /// polls, on the thread that polls, as often as it likes.
  void check_limits();
  /// What the memory files that it was given hold now is not the child's: for a parent that writes to them
  /// while the child lives. On the thread that polls.
  void forgive_given_files();
  /// Waits for lines and the end, `timeout` at most. `on_event` gets the type and the JSON data of each line
  /// that is neither result nor error. Returns the outcome once the child is gone and reaped.
  std::optional<ChildOutcome> poll(
      std::chrono::milliseconds timeout,
      const std::function<void(const std::string& type, const std::string& json)>& on_event);

private:
  using EventSink = std::function<void(const std::string& type, const std::string& json)>;
  void spawn(const ChildSpec& spec, int life_line_end, int channel_end);
  void kill_group();
  /// Since the start, pauses left out.
  std::chrono::steady_clock::duration running_time();
  /// False at the end of the channel.
  bool read_channel(const EventSink& on_event);
  void take_line(std::string_view line, const EventSink& on_event);
  /// Whether it holds too much memory; looks where that is due.
  bool is_past_memory();
  ChildOutcome reap(const EventSink& on_event);
  ChildOutcome classify(int status, double cpu_seconds) const;

  pid_t pid_ = -1;
  FileDescriptor pidfd_;
  FileDescriptor life_line_;
  FileDescriptor channel_;
  ChildLimits limits_;
  std::shared_ptr<const ChildPolicy> policy_;
  std::optional<MemoryWatch> memory_;                ///< where there is a limit
  std::chrono::steady_clock::time_point next_look_;  ///< of its
  std::unique_ptr<ChildCgroups::Group> group_;       ///< where one could be made
  std::chrono::milliseconds time_limit_;
  std::chrono::steady_clock::time_point started_;
  uint64_t output_left_;
  std::string partial_line_;
  std::string result_;
  std::optional<Error> reported_;
  std::string protocol_error_;
  bool timed_out_ = false;
  bool out_of_memory_ = false;
  std::mutex mutex_;
  bool cancelled_ = false;
  std::optional<std::chrono::steady_clock::time_point> paused_since_;
  std::chrono::steady_clock::duration paused_{0};
  bool reaped_ = false;
};

/// Makes this process the one that inherits its children's orphans. Call once in main of the server.
void become_subreaper();

}  // namespace tensormill::jobs
