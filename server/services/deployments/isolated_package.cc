#include "server/services/deployments/isolated_package.h"

#include <algorithm>
#include <optional>

#include "runtime/base/error.h"
#include "server/services/deployments/executor_link.h"
#include "server/services/deployments/run_totals.h"

namespace tensormill::server {

namespace {

class IsolatedPackage final : public HostedPackage {
public:
  IsolatedPackage(std::shared_ptr<ExecutorLink> link, const ExecutorLink::Ready& ready,
                  const HostOptions& options, const IsolationOptions& isolation,
                  jobs::ChildSlots::SlotPtr slot)
      : link_(std::move(link)),
        inputs_(ready.inputs),
        outputs_(ready.outputs),
        batched_(options.max_batch > 1),
        run_timeout_(isolation.run_timeout),
        slot_(std::move(slot)),
        totals_(std::make_shared<RunTotals>()) {
    totals_->set_memory(ready.memory_bytes);
    if (isolation.arenas) {
      arenas_.emplace(isolation.arenas);
      take_arenas(*arenas_, *isolation.arenas, options.instances, ready.memory_bytes);
    }
  }
  ~IsolatedPackage() override { link_->stop(); }
  IsolatedPackage(const IsolatedPackage&) = delete;
  IsolatedPackage& operator=(const IsolatedPackage&) = delete;

  const std::vector<services::TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<services::TensorSpec>& outputs() const override { return outputs_; }
  services::InferStatistics statistics() const override { return totals_->statistics(); }
  std::shared_ptr<void> admit() override {
    link_->require_room();
    return nullptr;
  }
  /// Its answer comes from another process: no thread that reads sockets waits for that.
  bool is_quick() const override { return false; }

  void run(services::NamedTensors inputs, const services::RunOptions& options,
           const services::CallContext& context, services::Done<services::RunResult> done) override {
    using Clock = ExecutorLink::Clock;
    if (context.cancelled.stop_requested()) throw Error(ErrorCode::kCancelled, "the client has gone");
    const Clock::time_point arrived = Clock::now();
    const std::chrono::microseconds limit = run_timeout_;
    const bool has_rows = batched_ && !inputs.empty() && !inputs.front().second.shape().empty();
    const int64_t rows = has_rows ? inputs.front().second.shape().front() : 1;
    const auto finish = [totals = totals_, arrived, rows,
                         done = std::move(done)](services::Outcome<services::RunResult> outcome) {
      const std::chrono::nanoseconds spent = Clock::now() - arrived;
      done(services::Outcome<services::RunResult>::of([&] {
        try {
          services::RunResult result = outcome.take();
          totals->answered(result, rows, spent);
          return result;
        } catch (const std::exception&) {
          totals->failed(spent);
          throw;
        }
      }));
    };
    link_->submit(std::move(inputs), options, arrived + std::min(limit, options.timeout.value_or(limit)),
                  context.cancelled, finish);
  }

private:
  std::shared_ptr<ExecutorLink> link_;
  const std::vector<services::TensorSpec> inputs_, outputs_;
  const bool batched_;
  const std::chrono::milliseconds run_timeout_;
  jobs::ChildSlots::SlotPtr slot_;     ///< null where children are not counted
  std::optional<MemoryShare> arenas_;  ///< what the process has for its executors
  std::shared_ptr<RunTotals> totals_;  ///< an answer may come when the package goes
};

}  // namespace

std::shared_ptr<HostedPackage> load_isolated(const MemberBlobs& members, const HostOptions& options,
                                             const IsolationOptions& isolation) {
  // For as long as the package is there, whichever process runs it; with all that the process may take, which
  // it does where it interprets a shape without kernels.
  jobs::ChildSlots::SlotPtr slot;
  if (isolation.slots != nullptr)
    slot = isolation.slots->for_executor(process_memory(isolation, options.instances));
  const auto link = std::make_shared<ExecutorLink>(members, options, isolation);
  try {
    const ExecutorLink::Ready ready = link->start();
    return std::make_shared<IsolatedPackage>(link, ready, options, isolation, std::move(slot));
  } catch (const Error& error) {
    link->stop();
    // What ended the process at its first load is what the package does.
    if (error.code() != ErrorCode::kJobFailed) throw;
    throw Error(ErrorCode::kInvalidPackage, "load: " + error.message());
  }
}

}  // namespace tensormill::server
