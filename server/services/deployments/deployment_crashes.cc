// Loads in which the process before this one crashed: which of them it was, and what that costs it. A process
// tells of a load before it begins (Version::load_begun): where it is alone in the deployment's row, as one
// of several in a row of its own. One that ended otherwise than by a crash of its own is not counted
// (CrashMark).
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/deployments/deployment_service.h"

namespace tensormill::server {

void DeploymentServiceImpl::blame_load_of(const std::vector<BegunLoad>& begun) {
  CrashMark* mark = options_.crash_mark;
  if (mark == nullptr || !mark->was_left()) return;
  // Several are done one after the other now, so that the next crash tells.
  if (begun.size() == 1) count_crash(begun.front());
  // Before it is durable a crash would be counted once more, after it never again.
  mark->clear();
}

void DeploymentServiceImpl::count_crash(const BegunLoad& load) {
  constexpr int kTries = 8;
  for (int attempt = 1;; ++attempt) {
    const EntryPtr before = find(load.deployment);
    if (!before) return;
    Entry entry = *before;
    const auto known = entry.versions.find(load.number);
    const bool is_put = load.is_put && entry.loading &&
                        version_number(entry.loading->spec.version) == load.number &&
                        entry.loading->spec.package == load.package;
    VersionPtr* version = is_put ? &entry.loading : known != entry.versions.end() ? &known->second : nullptr;
    // Somebody has put another one meanwhile.
    if (version == nullptr || (*version)->spec.package != load.package) return;
    auto counted = std::make_shared<Version>(**version);
    ++counted->crashed_loads;
    *version = std::move(counted);
    try {
      // The load of a PUT is taken up by any replica, so its count is in the row of all. This one's own row
      // says no more that it had begun: if this process ends in between, the crash is not counted.
      if (is_put && is_replica()) observe(load.deployment, *before);
      is_put ? store(load.deployment, entry) : store_local(load.deployment, entry);
      set(load.deployment, std::make_shared<const Entry>(std::move(entry)));
      return;
    } catch (const Error& error) {
      if (!is_replica() || error.code() != ErrorCode::kConflict || attempt == kTries) throw;
    }
    refresh(load.deployment);
  }
}

void DeploymentServiceImpl::count_crashes() {
  std::vector<BegunLoad> begun;
  for (const storage::ObservedRow& row : catalog_.observed_by(options_.replica)) {
    const Json left = parse_json(row.state);
    // Another program may do what the one before could not.
    if (left.value("build", "") != options_.build) continue;
    const EntryPtr before = find(row.deployment);
    Entry entry = before ? *before : Entry();
    for (const auto& [text, known] : left.at("versions").items()) {
      const int number = version_number(text);
      const std::string package = known.value("package", "");
      if (known.value("load_begun", false)) begun.push_back({row.deployment, number, package, false});
      const auto version = entry.versions.find(number);
      const int crashes = known.value("crashed_loads", 0);
      if (crashes == 0 || version == entry.versions.end() || version->second->spec.package != package)
        continue;
      auto counted = std::make_shared<Version>(*version->second);
      counted->crashed_loads = crashes;
      version->second = std::move(counted);
    }
    if (const auto put = left.find("loading"); put != left.end())
      begun.push_back({row.deployment, version_number(put->at("version").get<std::string>()),
                       put->at("package").get<std::string>(), true});
    if (!before) continue;
    const storage::ObservedRow now = observed_row(row.deployment, entry);
    // The row that was left says it already.
    if (now.revision == row.revision && now.state == row.state) unobserved_.erase(row.deployment);
    set(row.deployment, std::make_shared<const Entry>(std::move(entry)));
  }
  blame_load_of(begun);
}

}  // namespace tensormill::server
