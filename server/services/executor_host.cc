#include "server/services/executor_host.h"

#include "runtime/base/error.h"
#include "runtime/exec/graph_executor.h"
#include "server/services/hosted_package.h"

namespace tensormill::server {

namespace {

template <typename Function>
auto in_stage(const char* stage, const Function& function) {
  try {
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
    const auto loaded = in_stage("load", [&] { return package::LoadedPackage::load(std::move(package)); });
    const auto hosted = in_stage(
        "bind", [&] { return std::make_shared<InProcessPackage>(loaded, pool_, options_, options); });
    if (options.max_batch > 1) in_stage("batch", [&] { hosted->check_batching(); });
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
