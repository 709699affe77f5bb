/// The child that runs candidates, as its parent sees it: started when needed, replaced after a crash, a
/// time-out or some hundred candidates. Thread-safety: belongs to one thread (its child dies with that
/// thread).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/file.h"
#include "runtime/base/json_fwd.h"
#include "server/jobs/child_process.h"

namespace tensormill::measure {

struct WorkerOptions {
  std::string program = "/proc/self/exe";    ///< has the subcommand child-measure
  int candidates = 300;                      ///< of one child
  uint64_t memory = uint64_t{8} << 30;       ///< bytes of one child: code, buffers and what candidates take
  uint64_t file_bytes = uint64_t{16} << 30;  ///< to which it may let the code's and the tensors' file grow
  bool confine = true;
  std::shared_ptr<const jobs::ChildPolicy> policy = {};
  double start_seconds = 20;  ///< for a child to come up, on a busy machine
};

class MeasureHost {
public:
  /// The memory files of Exchange; borrowed.
  MeasureHost(WorkerOptions options, int code_fd, int tensor_fd)
      : options_(std::move(options)), code_fd_(code_fd), tensor_fd_(tensor_fd) {}
  /// The child's answer to a request, or failure_json, also where the child does not take the request in
  /// time. `alive` is called every tenth of a second while it waits; what that throws ends the child.
  Json measure(
      const Json& request, double timeout_seconds, const std::function<void()>& alive = [] {});
  /// The limits of this machine with so many threads, as Roof has them (roof.h): {"gflops",
  /// "memory_gbytes_per_s", "l2_gbytes_per_s"}; null where the child gave no answer.
  Json measure_roof(
      int threads, int vector_bits, int64_t l2_bytes, const std::function<void()>& alive = [] {});
  /// Children started so far.
  int children() const { return children_; }

private:
  using Deadline = std::chrono::steady_clock::time_point;
  void start_child();
  Json ask(jobs::ChildProcess& child, const Json& request, Deadline deadline,
           const std::function<void()>& alive);
  static Json await(jobs::ChildProcess& child, Deadline deadline, const std::function<void()>& alive);

  WorkerOptions options_;
  int code_fd_;
  int tensor_fd_;
  FileDescriptor requests_;
  std::unique_ptr<jobs::ChildProcess> child_;  ///< none while it has a request
  int left_ = 0;                               ///< candidates that the child may still run
  int children_ = 0;
};

}  // namespace tensormill::measure
