#include "api/services/deployment_service.h"

#include <array>

namespace tensormill::services {

std::string_view deployment_state_name(DeploymentState state) {
  constexpr std::array<std::string_view, 5> kNames = {"loading", "ready", "unloading", "unloaded", "failed"};
  return kNames[static_cast<size_t>(state)];
}

std::optional<DeploymentState> deployment_state_from_name(std::string_view name) {
  for (const DeploymentState state :
       {DeploymentState::kLoading, DeploymentState::kReady, DeploymentState::kUnloading,
        DeploymentState::kUnloaded, DeploymentState::kFailed}) {
    if (deployment_state_name(state) == name) return state;
  }
  return std::nullopt;
}

}  // namespace tensormill::services
