/// Deployments: what the catalog says shall serve, and the packages that do. One version of a name serves at
/// a time; the next one is loaded before it takes over. Thread-safety: as services::DeploymentService.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "api/services/deployment_service.h"
#include "server/services/executor_host.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

class DeploymentServiceImpl final : public services::DeploymentService {
public:
  DeploymentServiceImpl(storage::BlobStore& blobs, storage::Catalog& catalog, ExecutorHost& host)
      : blobs_(blobs), catalog_(catalog), host_(host) {}

  /// Loads what the catalog holds. One that cannot be loaded, or that was being loaded when the process died
  /// twice, is failed and says why.
  void restore();

  services::PutResult put(const std::string& name, const services::DeploymentSpec& spec,
                          const services::CallContext& context) override;
  services::Page<services::Deployment> list(const services::PageQuery& page) override;
  services::Deployment get(const std::string& name) override;
  void remove(const std::string& name, const std::optional<std::string>& version,
              const services::CallContext& context) override;
  services::RunResult infer(const std::string& name, services::NamedTensors inputs,
                            const services::RunOptions& options,
                            const services::CallContext& context) override;
  services::ClassifyResult classify(const std::string& name, std::string_view image, int top,
                                    const services::CallContext& context) override;

private:
  /// Immutable once it stands in the map.
  struct Live {
    services::DeploymentSpec spec;
    services::DeploymentState state = services::DeploymentState::kReady;
    std::string reason;
    std::vector<std::string> labels;
    std::shared_ptr<HostedPackage> package;
    services::Timestamp created_at;
  };
  using LivePtr = std::shared_ptr<const Live>;

  LivePtr find(const std::string& name);
  LivePtr require(const std::string& name);
  LivePtr require_ready(const std::string& name);
  void set(const std::string& name, LivePtr live);
  LivePtr load(const services::DeploymentSpec& spec, services::Timestamp created_at);
  std::vector<std::string> read_labels(const services::DeploymentSpec& spec);
  void store(const std::string& name, const Live& live, int load_attempts);
  void restore_one(const storage::DeploymentRow& row);
  static services::Deployment describe(const std::string& name, const Live& live);

  storage::BlobStore& blobs_;
  storage::Catalog& catalog_;
  ExecutorHost& host_;
  std::mutex changes_;  ///< one change of what is deployed at a time
  std::shared_mutex mutex_;
  std::map<std::string, LivePtr> live_;
};

}  // namespace tensormill::server
