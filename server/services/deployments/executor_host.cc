#include "server/services/deployments/executor_host.h"

#include "runtime/base/error.h"
#include "runtime/exec/graph_executor.h"
#include "server/services/deployments/hosted_package.h"

namespace tensormill::server {

namespace {

template <typename Function>
auto in_stage(const char* stage, const std::stop_token& stop, const Function& function) {
  try {
    if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the server stops");
    return function();
  } catch (Error& error) {
    error.add_context(stage);
    throw;
  }
}

class InProcessHost final : public ExecutorHost {
public:
  InProcessHost(parallel::ThreadPool& pool, const InProcessOptions& options)
      : pool_(pool), options_(options) {}

  std::shared_ptr<HostedPackage> load(std::shared_ptr<const package::Package> package,
                                      const HostOptions& options) override {
    const std::stop_token& stop = options.stop;
    const auto loaded = in_stage(
        "load", stop, [&] { return package::LoadedPackage::load(std::move(package), options_.interpreter); });
    const auto hosted = in_stage(
        "bind", stop, [&] { return std::make_shared<InProcessPackage>(loaded, pool_, options_, options); });
    if (options.max_batch > 1) in_stage("batch", stop, [&] { hosted->check_batching(stop); });
    if (options.warmup) in_stage("warm-up", stop, [&] { hosted->warm_up(stop); });
    return hosted;
  }

private:
  parallel::ThreadPool& pool_;
  InProcessOptions options_;
};

}  // namespace

void take_arenas(MemoryShare& share, const MemoryBudget& budget, int instances, int64_t bytes) {
  try {
    share.take(static_cast<uint64_t>(bytes));
  } catch (const Error&) {
    throw Error(ErrorCode::kMemoryBudget, std::to_string(instances) + " instances need " +
                                              std::to_string(bytes) + " bytes, other deployments have " +
                                              std::to_string(budget.used()) + ", and " + budget.name() +
                                              " is " + std::to_string(budget.bytes()));
  }
}

std::unique_ptr<ExecutorHost> make_in_process_host(parallel::ThreadPool& pool,
                                                   const InProcessOptions& options) {
  return std::make_unique<InProcessHost>(pool, options);
}

}  // namespace tensormill::server
