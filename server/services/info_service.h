/// What this server is: versions, host, limits, targets, readiness.
/// Thread-safety: as the services' interfaces.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "api/services/info_service.h"
#include "compiler/target/target.h"

namespace tensormill::server {

class InfoServiceImpl final : public services::InfoService {
public:
  InfoServiceImpl(const target::Target& host, std::map<std::string, int64_t> limits,
                  services::ConfinementInfo confinement);
  services::ServerInfo info() override;
  /// Where gRPC is listened for.
  void set_grpc_port(int port) { grpc_port_ = port; }

private:
  services::ServerInfo info_;
  std::atomic<int> grpc_port_{0};
};

class TargetServiceImpl final : public services::TargetService {
public:
  explicit TargetServiceImpl(target::Target host) : host_(std::move(host)) {}
  std::vector<services::TargetPreset> list() override;
  services::ParsedTarget parse(const std::string& target) override;

private:
  target::Target host_;
};

class HealthServiceImpl final : public services::HealthService {
public:
  bool live() override { return true; }
  services::Readiness ready() override;
  /// All deployments that shall serve have been loaded, or are failed.
  void set_restored() { restored_ = true; }
  /// The store fails at the start; ready once set_restored() is called.
  void set_broken(const std::string& reason);
  void set_draining() { draining_ = true; }

private:
  std::atomic<bool> restored_{false};
  std::mutex mutex_;
  std::string reason_ = "loading deployments";  ///< until they are
  std::atomic<bool> draining_{false};
};

}  // namespace tensormill::server
