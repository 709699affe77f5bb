/// What the settings ask of all children of the server, and how the metrics hear of their walls.
/// Thread-safety: the policy may be used from many threads.
#pragma once

#include <memory>

#include "api/services/info_service.h"
#include "config/settings.h"
#include "server/jobs/confine.h"
#include "server/metrics/registry.h"

namespace tensormill::server {

/// `registry` outlives the policy.
std::shared_ptr<const jobs::ChildPolicy> make_child_policy(const config::Settings& settings,
                                                           metrics::Registry& registry);
/// What holds for children on this machine, for those who ask the server.
services::ConfinementInfo confinement_info(const jobs::ChildPolicy& policy);

}  // namespace tensormill::server
