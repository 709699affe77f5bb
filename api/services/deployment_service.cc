#include "api/services/deployment_service.h"

#include <array>

namespace tensormill::services {

std::string_view deployment_state_name(DeploymentState state) {
  constexpr std::array<std::string_view, 5> kNames = {"loading", "ready", "unloading", "unloaded", "failed"};
  return kNames[static_cast<size_t>(state)];
}

}  // namespace tensormill::services
