/// What is behind --ops-listen: /metrics, /healthz and /readyz, without keys and on threads of its own.
/// Metrics are given to who asks by an address or an allowed name; probes come with any. Thread-safety: as
/// http::Handler.
#pragma once

#include <utility>

#include "api/http/handler.h"
#include "api/http/security.h"
#include "api/services/info_service.h"
#include "server/metrics/registry.h"

namespace tensormill::cli {

class OpsHandler final : public http::Handler {
public:
  OpsHandler(metrics::Registry& registry, services::HealthService& health, http::AccessRules rules)
      : registry_(registry), health_(health), rules_(std::move(rules)) {}
  /// Health is answered while metrics are collected.
  http::Lane lane(const http::Request& request, std::string_view body) const noexcept override;
  http::Response handle(http::Request& request) noexcept override;

private:
  http::Response respond(const http::Request& request);

  metrics::Registry& registry_;
  services::HealthService& health_;
  const http::AccessRules rules_;
};

}  // namespace tensormill::cli
