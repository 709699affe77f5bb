/// What is behind --ops-listen: /metrics, /healthz and /readyz, without keys and on threads of its own.
/// Thread-safety: as http::Handler.
#pragma once

#include "api/http/handler.h"
#include "api/services/info_service.h"
#include "server/metrics/registry.h"

namespace tensormill::cli {

class OpsHandler final : public http::Handler {
public:
  OpsHandler(metrics::Registry& registry, services::HealthService& health)
      : registry_(registry), health_(health) {}
  /// Health is answered while metrics are collected.
  http::Lane lane(const http::Request& request, std::string_view body) const noexcept override;
  http::Response handle(http::Request& request) noexcept override;

private:
  http::Response respond(const http::Request& request);

  metrics::Registry& registry_;
  services::HealthService& health_;
};

}  // namespace tensormill::cli
