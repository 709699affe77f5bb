/// Where deployed packages run. The server uses the in-process host; an isolated one can follow behind the
/// same interface. Thread-safety: all methods from many threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "api/services/deployment_service.h"
#include "runtime/base/memory_budget.h"
#include "runtime/package/package_reader.h"
#include "runtime/parallel/thread_pool.h"

namespace tensormill::server {

/// Runs a package in a process of its own; of a request what services::DeploymentService::infer says.
using RunApart =
    std::function<services::RunResult(const services::NamedTensors& inputs,
                                      const services::RunOptions& options, const std::stop_token& cancelled)>;

struct HostOptions {
  int instances = 1;   ///< runs at once
  int max_queue = 64;  ///< runs that wait; past it Error(kUnavailable)
  bool warmup = true;
  int max_batch = 1;  ///< above 1: requests of 1..max_batch rows share runs
  std::chrono::microseconds max_delay{0};
  RunApart run_apart = {};    ///< for what no plan of the package takes; none: that is refused
  std::stop_token stop = {};  ///< ends the load early, with Error(kCancelled)
};

/// A package that is ready to run; unloaded at the end of its life.
class HostedPackage {
public:
  virtual ~HostedPackage() = default;
  /// With max_batch above 1 the first dim is free.
  virtual const std::vector<services::TensorSpec>& inputs() const = 0;
  virtual const std::vector<services::TensorSpec>& outputs() const = 0;
  /// As services::DeploymentService::infer. The caller keeps the package while this runs.
  virtual void run(services::NamedTensors inputs, const services::RunOptions& options,
                   const services::CallContext& context, services::Done<services::RunResult> done) = 0;
  /// Whether a request would be taken now, called before its input is made: what this returns, which may be
  /// null, is one of those that max_queue counts and is given back right before run(). Throws
  /// Error(kUnavailable).
  virtual std::shared_ptr<void> admit() { return nullptr; }
  /// As services::DeploymentService::input_room.
  virtual std::shared_ptr<void> input_room(size_t /*bytes*/) { return nullptr; }
  virtual services::InferStatistics statistics() const = 0;
  /// As services::DeploymentService::is_quick.
  virtual bool is_quick() const = 0;

  /// Bytes of the largest inputs that a run has had so far.
  uint64_t largest_inputs() const { return largest_inputs_.load(std::memory_order_relaxed); }
  void note_inputs(uint64_t bytes) {
    uint64_t known = largest_inputs();
    while (bytes > known && !largest_inputs_.compare_exchange_weak(known, bytes, std::memory_order_relaxed)) {
    }
  }

private:
  std::atomic<uint64_t> largest_inputs_{0};
};

class ExecutorHost {
public:
  virtual ~ExecutorHost() = default;
  /// Returns when it can run. Throws what LoadedPackage::load and GraphExecutor throw, with the stage in
  /// front ("load", "bind", "batch", "warm-up"); Error(kMemoryBudget) where the instances' memory does not
  /// fit beside that of the other packages; Error(kInvalidArgument) for a max_batch above 1 where one row of
  /// the package's batch changes the results of another.
  virtual std::shared_ptr<HostedPackage> load(std::shared_ptr<const package::Package> package,
                                              const HostOptions& options) = 0;
};

struct InProcessOptions {
  int threads = 1;                           ///< of a run; the instances of a package share them
  int64_t memory_budget = int64_t{8} << 30;  ///< of one executor
  std::chrono::milliseconds run_timeout{30'000};
  std::shared_ptr<MemoryBudget> arenas = {};  ///< of all executors of all packages; null: no bound
  package::MakeInterpreter interpreter = {};  ///< for what no plan of a package takes; none: that is refused
};

/// What a package's instances need of the memory of all executors. Throws Error(kMemoryBudget).
void take_arenas(MemoryShare& share, const MemoryBudget& budget, int instances, int64_t bytes);

/// Never null; `pool` outlives what the host loads.
std::unique_ptr<ExecutorHost> make_in_process_host(parallel::ThreadPool& pool,
                                                   const InProcessOptions& options);

}  // namespace tensormill::server
