#include "server/services/jobs/child_policy.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "server/jobs/child_cgroups.h"

namespace tensormill::server {
namespace {

/// "" where it cannot be read.
std::string read_text(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::shared_ptr<const jobs::ChildPolicy> make_child_policy(const config::Settings& settings,
                                                           metrics::Registry& registry) {
  jobs::ChildPolicy policy;
  policy.require_confinement = settings.require_confinement;
  policy.user = jobs::usable_child_user(static_cast<uint32_t>(settings.child_user));
  if (settings.child_cgroups)
    policy.cgroups = jobs::ChildCgroups::divide(jobs::system_cgroup_files(), read_text("/proc/self/cgroup"));
  policy.on_confined = [&registry](jobs::ChildKind kind, const jobs::Confinement& confinement) {
    const std::string missing = jobs::missing_wall(kind, confinement);
    registry.count("children_total", {{"kind", std::string(jobs::child_kind_name(kind))},
                                      {"missing_wall", missing.empty() ? "none" : missing}});
  };
  return std::make_shared<const jobs::ChildPolicy>(std::move(policy));
}

jobs::ChildSlotsOptions child_slots_options(const config::Settings& settings, int cores, uint64_t memory) {
  jobs::ChildSlotsOptions options;
  options.memory = settings.children_memory > 0 ? settings.children_memory : memory / 4 * 3;
  options.requests = settings.children_at_once > 0 ? settings.children_at_once : std::max(2, cores);
  options.waiting = settings.children_queue;
  options.wait = settings.children_wait;
  return options;
}

services::ConfinementInfo confinement_info(const jobs::ChildPolicy& policy) {
  const jobs::Confinement walls = jobs::expected_confinement(policy);
  const std::string watch = policy.cgroups ? "a control group and the parent's watch" : "the parent's watch";
  return {policy.require_confinement, walls.seccomp, walls.landlock, walls.user,
          walls.memory_limit ? "RLIMIT_DATA, " + watch : watch};
}

}  // namespace tensormill::server
