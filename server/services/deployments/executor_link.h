/// The server's end of one process that runs a package: requests by number, their answers, and the process's
/// replacement when it ends. isolated_package.h is the front. Thread-safety: all methods from many threads.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/file.h"
#include "server/jobs/child_process.h"
#include "server/services/deployments/executor_wire.h"
#include "server/services/deployments/isolated_package.h"

namespace tensormill::server {

class ExecutorLink final : public std::enable_shared_from_this<ExecutorLink> {
public:
  using Clock = std::chrono::steady_clock;
  /// Called once with how a request ended, without locks, on a thread of the link's.
  using Done = std::function<void(services::Outcome<services::RunResult>)>;
  /// What a process says when it is ready.
  struct Ready {
    std::vector<services::TensorSpec> inputs, outputs;
    int64_t memory_bytes = 0;
  };

  ExecutorLink(const MemberBlobs& members, const HostOptions& options, const IsolationOptions& isolation);
  /// Starts the first process and waits until it is ready. Throws what it says instead.
  Ready start();
  /// Throws Error(kUnavailable) when as many requests wait as may.
  void require_room();
  /// Sends a request now or, while there is no process, once there is one. Throws Error(kUnavailable) when
  /// too many wait or the link has stopped.
  void submit(services::NamedTensors inputs, const services::RunOptions& options, Clock::time_point deadline,
              const std::stop_token& cancelled, Done done);
  /// Ends the process and, unless the caller is one of them, waits for the link's threads.
  void stop();

private:
  struct Pending;
  using PendingPtr = std::shared_ptr<Pending>;

  void supervise();
  /// One process from start to end. Returns why it ended; nothing after stop().
  std::optional<Error> run_process();
  jobs::ChildSpec spec(int requests, int answers) const;
  void became_ready(const std::string& text);
  void read_answers(int fd);
  void take_answer(Frame frame);
  PendingPtr take(uint64_t id);
  void send(const PendingPtr& pending);
  void send_waiting();
  void look_after(jobs::ChildProcess& child);
  void fail(const Error& error, bool unsent);
  void end_process();
  bool wait_before_next(int failures);

  const MemberBlobs members_;
  const HostOptions options_;
  const IsolationOptions isolation_;
  std::thread supervisor_;

  std::mutex writing_;  ///< guards the pipe; taken before mutex_
  FileDescriptor to_process_;
  bool is_up_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, PendingPtr> pending_;
  std::vector<uint64_t> cancelled_;  ///< by their clients; the supervisor tells the process
  uint64_t next_id_ = 1;
  jobs::ChildProcess* child_ = nullptr;
  std::thread::id reader_;
  std::optional<Ready> ready_;    ///< of the first process
  std::optional<Error> refusal_;  ///< why there was no first process
  bool stopped_ = false;
};

}  // namespace tensormill::server
