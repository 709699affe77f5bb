/// Services that tell the metrics what they did, around the ones that do it.
/// Thread-safety: as the services' interfaces.
#pragma once

#include <string>

#include "api/services/deployment_service.h"
#include "server/jobs/job_runner.h"
#include "server/metrics/latency_history.h"
#include "server/metrics/registry.h"

namespace tensormill::server {

class MeteredDeployments final : public services::DeploymentService {
public:
  MeteredDeployments(services::DeploymentService& inner, metrics::Registry& registry)
      : inner_(inner), registry_(registry) {}
  services::PutResult put(const std::string& name, const services::DeploymentSpec& spec,
                          const services::CallContext& context) override;
  services::PutResult set_weights(const std::string& name, const services::VersionWeights& weights,
                                  const services::CallContext& context) override {
    return inner_.set_weights(name, weights, context);
  }
  services::PutResult rollback(const std::string& name, const services::CallContext& context) override;
  services::Page<services::Deployment> list(const services::PageQuery& page) override {
    return inner_.list(page);
  }
  services::Deployment get(const std::string& name) override { return inner_.get(name); }
  bool has(const std::string& name) override { return inner_.has(name); }
  services::DeploymentSpec spec(const std::string& name, const std::string& version) override {
    return inner_.spec(name, version);
  }
  services::Traffic traffic(const std::string& name) override;
  bool is_quick(const std::string& name) override { return inner_.is_quick(name); }
  uint64_t largest_inputs(const std::string& name) override { return inner_.largest_inputs(name); }
  std::shared_ptr<void> admit(const std::string& name, const std::string& version) override;
  std::vector<std::string> elsewhere(const std::string& name, const std::string& version) override {
    return inner_.elsewhere(name, version);
  }
  std::shared_ptr<void> input_room(const std::string& name, const std::string& version,
                                   size_t bytes) override {
    return inner_.input_room(name, version, bytes);
  }
  std::vector<services::InferStatistics> statistics(const std::string& name,
                                                    const std::string& version) override {
    return inner_.statistics(name, version);
  }
  void unload(const std::string& name) override { inner_.unload(name); }
  void load(const std::string& name) override { inner_.load(name); }
  void remove(const std::string& name, const std::optional<std::string>& version,
              const services::CallContext& context) override;
  void infer(const std::string& name, const std::string& version, services::NamedTensors inputs,
             const services::RunOptions& options, const services::CallContext& context,
             services::Done<services::RunResult> done) override;
  bool takes_pictures(const std::string& name, const std::string& version) override {
    return inner_.takes_pictures(name, version);
  }
  void infer_pictures(const std::string& name, const std::string& version, services::PictureFiles pictures,
                      const services::RunOptions& options, const services::CallContext& context,
                      services::Done<services::RunResult> done) override;
  void classify(const std::string& name, std::string_view image, int top,
                const services::CallContext& context, services::Done<services::ClassifyResult> done) override;

private:
  /// Versions that went for another one take their series along; errors have no version, the queue is the
  /// name's.
  void forget_gone(const services::Deployment& deployment);

  services::DeploymentService& inner_;
  metrics::Registry& registry_;
  metrics::LatencyHistory history_;
};

class MeteredRunner final : public jobs::JobRunner {
public:
  MeteredRunner(jobs::JobRunner& inner, metrics::Registry& registry) : inner_(inner), registry_(registry) {}
  std::string kind() const override { return inner_.kind(); }
  bool measures() const override { return inner_.measures(); }
  bool is_elsewhere(const storage::JobRow& job) const override { return inner_.is_elsewhere(job); }
  storage::JobFinish run(jobs::JobContext& context) override;

private:
  jobs::JobRunner& inner_;
  metrics::Registry& registry_;
};

}  // namespace tensormill::server
