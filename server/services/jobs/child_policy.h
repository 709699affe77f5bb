/// What the settings ask of all children of the server, and how the metrics hear of their walls.
/// Thread-safety: the policy may be used from many threads; the functions are pure or read the machine.
#pragma once

#include <cstdint>
#include <memory>

#include "api/services/info_service.h"
#include "config/settings.h"
#include "server/jobs/child_slots.h"
#include "server/jobs/confine.h"
#include "server/metrics/registry.h"

namespace tensormill::server {

/// `registry` outlives the policy.
std::shared_ptr<const jobs::ChildPolicy> make_child_policy(const config::Settings& settings,
                                                           metrics::Registry& registry);
/// How many children may run side by side on a machine of so many cores and bytes of memory, which say what
/// the settings leave open.
jobs::ChildSlotsOptions child_slots_options(const config::Settings& settings, int cores, uint64_t memory);
/// What holds for children on this machine, for those who ask the server.
services::ConfinementInfo confinement_info(const jobs::ChildPolicy& policy);

}  // namespace tensormill::server
