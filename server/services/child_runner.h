/// Children for requests that wait for them: import and one-off runs. Jobs have JobContext::run_child.
/// Thread-safety: all methods from many threads.
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>

#include "server/jobs/child_process.h"

namespace tensormill::server {

class ChildRunner {
public:
  /// Each child works in a fresh folder inside `folder`, which is emptied here.
  ChildRunner(std::string folder, std::shared_ptr<const jobs::ChildPolicy> policy = nullptr);
  /// Runs a child to its end and returns its result (JSON). Throws the error of its end, Error(kCancelled)
  /// when `cancelled` stops.
  std::string run(jobs::ChildSpec spec, const std::stop_token& cancelled);

private:
  std::string folder_;
  std::shared_ptr<const jobs::ChildPolicy> policy_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace tensormill::server
