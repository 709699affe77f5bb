#include "server/services/executor_host.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "runtime/base/error.h"
#include "runtime/exec/graph_executor.h"
#include "server/services/forms.h"
#include "server/services/run_package.h"

namespace tensormill::server {

namespace {

using Clock = std::chrono::steady_clock;

template <typename Function>
auto in_stage(const char* stage, const Function& function) {
  try {
    return function();
  } catch (Error& error) {
    error.add_context(stage);
    throw;
  }
}

class InProcessPackage final : public HostedPackage {
public:
  InProcessPackage(std::shared_ptr<const package::LoadedPackage> package, parallel::ThreadPool& pool,
                   const InProcessOptions& host, const HostOptions& options)
      : pool_(pool),
        host_(host),
        options_(options),
        inputs_(specs_of(package->metadata().inputs)),
        outputs_(specs_of(package->metadata().outputs)) {
    for (int i = 0; i < options.instances; ++i) {
      executors_.push_back(std::make_unique<exec::GraphExecutor>(
          package, exec::ExecutorOptions{host.threads, host.memory_budget}));
      free_.push_back(executors_.back().get());
    }
  }

  const std::vector<services::TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<services::TensorSpec>& outputs() const override { return outputs_; }

  services::RunResult run(const services::NamedTensors& inputs, const services::RunOptions& options,
                          const services::CallContext& context) override {
    const Clock::time_point start = Clock::now();
    const Clock::time_point deadline =
        start + std::min(host_.run_timeout, options.timeout.value_or(host_.run_timeout));
    const Turn turn(*this, deadline, context.cancelled);
    const double queue_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    parallel::CancelToken cancel;
    const std::stop_callback on_cancel(context.cancelled, [&cancel] { cancel.cancel(); });
    exec::RunOptions run_options;
    run_options.threads = host_.threads;
    run_options.deadline = deadline;
    run_options.cancel = &cancel;
    services::RunResult result = run_executor(turn.executor(), inputs, options, pool_, run_options);
    result.timing.queue_ms = queue_ms;
    return result;
  }

  /// The first run pays for page faults and lazily made mappings. Data that the model refuses is no failure.
  void warm_up() {
    services::RunOptions options;
    options.fill_mode = services::FillMode::kZeros;
    for (size_t i = 0; i < executors_.size(); ++i) {
      try {
        run({}, options, {});
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kTensorData) throw;
      }
    }
  }

private:
  /// An executor for one run, waited for in a bounded queue.
  class Turn {
  public:
    Turn(InProcessPackage& owner, Clock::time_point deadline, const std::stop_token& cancelled)
        : owner_(owner) {
      std::unique_lock lock(owner.mutex_);
      if (owner.free_.empty() && owner.waiting_ >= owner.options_.max_queue) {
        throw Error(ErrorCode::kUnavailable, "the queue is full: " + std::to_string(owner.waiting_) +
                                                 " requests wait, the limit is " +
                                                 std::to_string(owner.options_.max_queue));
      }
      ++owner.waiting_;
      const bool got =
          owner.freed_.wait_until(lock, cancelled, deadline, [&] { return !owner.free_.empty(); });
      --owner.waiting_;
      if (!got) {
        const bool gone = cancelled.stop_requested();
        throw Error(gone ? ErrorCode::kCancelled : ErrorCode::kDeadlineExceeded,
                    gone ? "the client has gone" : "no instance became free in time");
      }
      executor_ = owner.free_.back();
      owner.free_.pop_back();
    }
    ~Turn() {
      {
        const std::lock_guard lock(owner_.mutex_);
        owner_.free_.push_back(executor_);
      }
      owner_.freed_.notify_one();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    exec::GraphExecutor& executor() const { return *executor_; }

  private:
    InProcessPackage& owner_;
    exec::GraphExecutor* executor_ = nullptr;
  };

  parallel::ThreadPool& pool_;
  const InProcessOptions host_;
  const HostOptions options_;
  const std::vector<services::TensorSpec> inputs_;
  const std::vector<services::TensorSpec> outputs_;
  std::vector<std::unique_ptr<exec::GraphExecutor>> executors_;
  std::mutex mutex_;
  std::condition_variable_any freed_;
  std::vector<exec::GraphExecutor*> free_;
  int waiting_ = 0;
};

class InProcessHost final : public ExecutorHost {
public:
  InProcessHost(parallel::ThreadPool& pool, const InProcessOptions& options)
      : pool_(pool), options_(options) {}

  std::shared_ptr<HostedPackage> load(std::shared_ptr<const package::Package> package,
                                      const HostOptions& options) override {
    const auto loaded = in_stage("load", [&] { return package::LoadedPackage::load(std::move(package)); });
    const auto hosted = in_stage(
        "bind", [&] { return std::make_shared<InProcessPackage>(loaded, pool_, options_, options); });
    if (options.warmup) in_stage("warm-up", [&] { hosted->warm_up(); });
    return hosted;
  }

private:
  parallel::ThreadPool& pool_;
  InProcessOptions options_;
};

}  // namespace

std::unique_ptr<ExecutorHost> make_in_process_host(parallel::ThreadPool& pool,
                                                   const InProcessOptions& options) {
  return std::make_unique<InProcessHost>(pool, options);
}

}  // namespace tensormill::server
