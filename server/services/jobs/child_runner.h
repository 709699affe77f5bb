/// Children for requests that wait for them: import and one-off runs. Jobs have JobContext::run_child.
/// Thread-safety: all methods from many threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "server/jobs/child_process.h"
#include "server/jobs/child_slots.h"

namespace tensormill::server {

class ChildRunner {
public:
  using Clock = jobs::ChildSlots::Clock;

  /// Each child works in a fresh folder inside `folder`, which is emptied here. `slots`, borrowed, say how
  /// many may run.
  ChildRunner(std::string folder, jobs::ChildSlots& slots,
              std::shared_ptr<const jobs::ChildPolicy> policy = nullptr);
  /// Throws Error(kUnavailable) when a request with a child of this memory limit would be refused at once.
  void require_room(uint64_t memory) { slots_.require_room(memory); }
  /// Waits until a child of this memory limit may run, runs it to its end and returns its result (JSON).
  /// Throws the error of its end, Error(kCancelled) when `cancelled` stops, Error(kUnavailable) when too many
  /// wait or it took too long, Error(kDeadlineExceeded) when `deadline` passed before the child began.
  std::string run(jobs::ChildSpec spec, const std::stop_token& cancelled,
                  Clock::time_point deadline = Clock::time_point::max());
  /// The same for a child whose descriptors take memory: `make` is called once it may run, so that who waits
  /// has none of it. What `make` fills lives until this returns.
  std::string run(uint64_t memory, const std::function<jobs::ChildSpec()>& make,
                  const std::stop_token& cancelled, Clock::time_point deadline = Clock::time_point::max());

private:
  std::string folder_;
  jobs::ChildSlots& slots_;
  std::shared_ptr<const jobs::ChildPolicy> policy_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace tensormill::server
