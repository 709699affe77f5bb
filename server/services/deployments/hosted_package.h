/// A loaded package with its executors behind a batcher. Thread-safety: as HostedPackage.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/exec/graph_executor.h"
#include "runtime/package/package_reader.h"
#include "server/batching/batcher.h"
#include "server/services/deployments/executor_host.h"
#include "server/services/deployments/row_slabs.h"

namespace tensormill::server {

class InProcessPackage final : public HostedPackage, public std::enable_shared_from_this<InProcessPackage> {
public:
  /// Throws what GraphExecutor throws.
  InProcessPackage(const std::shared_ptr<const package::LoadedPackage>& package, parallel::ThreadPool& pool,
                   const InProcessOptions& host, const HostOptions& options);

  const std::vector<services::TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<services::TensorSpec>& outputs() const override { return outputs_; }
  void run(services::NamedTensors inputs, const services::RunOptions& options,
           const services::CallContext& context, services::Done<services::RunResult> done) override;
  std::shared_ptr<void> admit() override { return batcher_.admit(); }
  std::shared_ptr<void> input_room(size_t bytes) override;
  services::InferStatistics statistics() const override;
  bool is_quick() const override;

  /// Throws Error(kInvalidArgument) unless requests may share runs. Before the first run().
  void check_batching(const std::stop_token& stop);
  /// The first run pays for page faults and lazily made mappings. Data that the model refuses is no failure.
  void warm_up(const std::stop_token& stop);

private:
  /// What a run can be compiled for; ascending by rows.
  struct Variant {
    int64_t rows = 1;
    std::unique_ptr<exec::GraphExecutor> executor;
  };
  using Instance = std::vector<Variant>;
  struct InferRequest;

  /// Bytes of the executors' memory, of all instances. Throws Error(kMemoryBudget) where they do not fit.
  int64_t count_arenas(const package::LoadedPackage& package);
  bool batched() const { return options_.max_batch > 1; }
  Instance make_instance(const std::shared_ptr<const package::LoadedPackage>& package) const;
  exec::RunOptions run_options(batching::Clock::time_point deadline,
                               const parallel::CancelToken& cancel) const;
  exec::GraphExecutor& executor_for(int instance, int64_t rows);
  void run_batch(int instance, std::span<const batching::RequestPtr> batch);
  void run_together(exec::GraphExecutor& executor, const std::vector<InferRequest*>& batch);
  void make_slabs();
  uint64_t answer_bytes() const;
  /// The rows of the batch to where the executor reads them; the row of each request.
  std::vector<int64_t> place_rows(exec::GraphExecutor& executor, const std::vector<InferRequest*>& batch);
  void run_single(exec::GraphExecutor& executor, InferRequest& request, const exec::RunOptions& options);
  /// What the executor makes of the request or, for a shape that no plan takes, the package in a process of
  /// its own.
  services::RunResult result_of(exec::GraphExecutor& executor, const InferRequest& request,
                                const exec::RunOptions& options);
  void count(const std::vector<InferRequest*>& batch, batching::Clock::time_point gathered,
             batching::Clock::time_point computed);
  void count_failure(batching::Clock::time_point arrived);
  void remember_time(batching::Clock::duration spent);

  parallel::ThreadPool& pool_;
  const InProcessOptions host_;
  const HostOptions options_;
  std::vector<services::TensorSpec> inputs_;
  std::vector<services::TensorSpec> outputs_;
  std::optional<MemoryShare> arenas_;  ///< what the instances take, before they do
  std::vector<Instance> instances_;
  size_t row_bytes_ = 0;           ///< of a row of slabs_
  std::optional<RowSlabs> slabs_;  ///< where requests that share runs have one large input
  batching::Batcher batcher_;
  /// Of one shape but for the rows, and none waits for others to share its run: those that were tell how long
  /// the next one takes.
  bool runs_are_alike_ = false;
  bool answers_are_small_ = false;
  std::atomic<int64_t> usual_ns_{0};  ///< moving average of a run's time
  mutable std::mutex statistics_mutex_;
  services::InferStatistics statistics_;
};

}  // namespace tensormill::server
