#include "server/services/deployments/host_runs.h"

#include <algorithm>
#include <string>
#include <vector>

namespace tensormill::server {

bool host_runs(const target::Target& target, const target::Target& host) {
  if (target.is_x86() != host.is_x86()) return false;
  const std::vector<std::string> have = host.required_features();
  const std::vector<std::string> need = target.required_features();
  return std::includes(have.begin(), have.end(), need.begin(), need.end());
}

}  // namespace tensormill::server
