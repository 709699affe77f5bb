/// The durable form of a deployment: the JSON in the catalog's row.
/// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/services/deployment_service.h"
#include "storage/catalog/rows.h"

namespace tensormill::server {

/// Loads in which a process crashed, after which a version is not tried again.
inline constexpr int kMaxCrashedLoads = 2;

struct DesiredVersion {
  services::DeploymentSpec spec;
  int crashed_loads = 0;     ///< one after the other, in which the process crashed
  bool load_begun = false;   ///< and its end is not known
  std::string build = {};    ///< of the program that says so
  std::string failure = {};  ///< why it does not serve; "": it shall
  bool unloaded = false;     ///< somebody took it out of memory
};

struct DesiredDeployment {
  services::Timestamp created_at;
  int default_version = 0;  ///< 0: none
  std::vector<DesiredVersion> versions;
  std::optional<DesiredVersion> loading;  ///< takes the place of the version of its number once it is ready
  std::string loader = {};                ///< the replica that loads it, where there are several
  services::VersionWeights weights = {};  ///< empty: the default version has all requests
  std::optional<services::DeploymentSpec> previous = {};  ///< what had all requests before
  std::vector<storage::RepeatKey> asked = {};  ///< requests that are done when what is loading is ready
};

std::string desired_to_text(const DesiredDeployment& desired);
/// Throws Error(kInvalidJson) for a text that desired_to_text did not make.
DesiredDeployment desired_from_text(const std::string& text);
/// The same as the program of this build takes it: what crashed another one, and what that gave up for it, it
/// tries itself.
DesiredDeployment desired_for(const std::string& build, const std::string& text);
/// The number of a valid version text.
int version_number(const std::string& version);

}  // namespace tensormill::server
