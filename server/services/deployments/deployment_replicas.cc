// Deployments that several processes serve: each follows the rows, and says what it has made of them.
#include <algorithm>
#include <iterator>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/deployments/deployment_service.h"
#include "server/services/forms.h"

namespace tensormill::server {

namespace {

using services::DeploymentState;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Other processes say when they have followed; that may get lost.
constexpr milliseconds kFollowLook{500};
/// Told in one transaction, while which no deployment can be changed by this process.
constexpr size_t kObservedTogether = 500;

/// What a row of observed says of a version; a row without it is of a process that has not seen it.
services::ReplicaState state_in(const Json& row, int number) {
  services::ReplicaState state;
  const auto version = row.at("versions").find(std::to_string(number));
  if (version == row.at("versions").end()) return state;
  state.state = services::deployment_state_from_name(version->at("state").get<std::string>())
                    .value_or(DeploymentState::kLoading);
  state.reason = version->at("reason").get<std::string>();
  return state;
}

bool is_settled(const Json& row) {
  const Json& versions = row.at("versions");
  return std::none_of(versions.begin(), versions.end(), [](const Json& version) {
    return version.at("state") == services::deployment_state_name(DeploymentState::kLoading);
  });
}

bool is_same(const services::DeploymentSpec& a, const services::DeploymentSpec& b) {
  return spec_to_json(a) == spec_to_json(b);
}

}  // namespace

void DeploymentServiceImpl::changed_elsewhere() {
  ++notices_;
  ended_.notify_all();
}

storage::ObservedRow DeploymentServiceImpl::observed_row(const std::string& name, const Entry& entry) const {
  Json versions = Json::object();
  for (const auto& [number, version] : entry.versions) {
    Json& row = versions[std::to_string(number)];
    row = {{"state", services::deployment_state_name(version->state)}, {"reason", version->reason}};
    // For the next process of this name (count_crashes).
    if (version->crashed_loads == 0 && !version->load_begun) continue;
    row.update({{"package", version->spec.package},
                {"crashed_loads", version->crashed_loads},
                {"load_begun", version->load_begun}});
  }
  Json state = {{"versions", std::move(versions)}, {"build", options_.build}};
  if (entry.loading && entry.loading->load_begun)
    state["loading"] = {{"version", entry.loading->spec.version}, {"package", entry.loading->spec.package}};
  return {name, options_.replica, entry.revision, canonical_json(state)};
}

void DeploymentServiceImpl::observe(const std::string& name, const Entry& entry) {
  // Also where the catalog fails now: then it is told later.
  unobserved_.insert(name);
  catalog_.put_observed(std::vector{observed_row(name, entry)});
  unobserved_.erase(name);
}

bool DeploymentServiceImpl::observe_some() {
  std::vector<storage::ObservedRow> rows;
  auto end = unobserved_.begin();
  for (; end != unobserved_.end() && rows.size() < kObservedTogether; ++end) {
    if (const EntryPtr entry = find(*end)) rows.push_back(observed_row(*end, *entry));
  }
  catalog_.put_observed(rows);
  unobserved_.erase(unobserved_.begin(), end);
  return !unobserved_.empty();
}

void DeploymentServiceImpl::store_local(const std::string& name, Entry& entry) {
  if (is_replica()) return observe(name, entry);
  store(name, entry);
}

void DeploymentServiceImpl::remove_row(const std::string& name, const Entry& entry) {
  catalog_.remove_deployment(name, is_replica() ? std::optional(entry.revision) : std::nullopt);
}

DeploymentServiceImpl::VersionPtr DeploymentServiceImpl::version_of(const DesiredVersion& wanted,
                                                                    const EntryPtr& before, int number) {
  if (before) {
    const auto known = before->versions.find(number);
    if (known != before->versions.end() && is_same(known->second->spec, wanted.spec)) {
      const Version& version = *known->second;
      const bool failed = version.state == DeploymentState::kFailed && !version.fails_here;
      const bool unloaded = version.state == DeploymentState::kUnloaded && !version.rests;
      if (unloaded == wanted.unloaded && failed == !wanted.failure.empty()) return known->second;
    }
  }
  auto version = std::make_shared<Version>();
  version->spec = wanted.spec;
  version->crashed_loads = wanted.crashed_loads;
  if (wanted.unloaded) version->state = DeploymentState::kUnloaded;
  if (wanted.failure.empty()) return version;
  version->state = DeploymentState::kFailed;
  version->reason = wanted.failure;
  return version;
}

DeploymentServiceImpl::Entry DeploymentServiceImpl::entry_of(const storage::DeploymentRow& row,
                                                             const EntryPtr& before) const {
  const DesiredDeployment desired = desired_for(options_.build, row.desired);
  Entry entry;
  entry.created_at = desired.created_at;
  entry.default_version = desired.default_version;
  entry.loader = desired.loader;
  entry.asked = desired.asked;
  entry.revision = row.revision;
  show_traffic(entry, desired, before);
  for (const DesiredVersion& wanted : desired.versions) {
    const int number = version_number(wanted.spec.version);
    VersionPtr version = version_of(wanted, before, number);
    // What is not to be loaded here rests from the start: of many deployments none is a step of its own.
    const bool waits = version->state == DeploymentState::kLoading && !version->package && !version->demanded;
    if (VersionPtr rests = waits ? resting(*version, false) : nullptr) version = std::move(rests);
    entry.versions[number] = std::move(version);
  }
  if (desired.loading) {
    const bool known = before && before->loading && is_same(before->loading->spec, desired.loading->spec);
    entry.loading = known ? before->loading : version_of(*desired.loading, nullptr, 0);
  }
  const VersionPtr served = before ? serving(*before) : nullptr;
  const auto next = entry.versions.find(entry.default_version);
  const bool waits = next != entry.versions.end() && !next->second->package &&
                     next->second->state == DeploymentState::kLoading;
  if (waits && served && served->package) entry.retained = served;
  return entry;
}

/// Whoever waits for a load of another process is told of its end.
void DeploymentServiceImpl::settle_ticket(const std::string& name, const Entry& entry) {
  const auto known = tickets_.find(name);
  if (entry.loading) {
    if (known != tickets_.end()) return;
    tickets_[name] = std::make_shared<Ticket>();
    tickets_[name]->acknowledged = true;
    tickets_[name]->is_elsewhere = true;
    return;
  }
  if (known == tickets_.end() || !known->second->is_elsewhere) return;
  known->second->done = true;
  const auto newest = entry.versions.rbegin();
  if (newest != entry.versions.rend() && newest->second->state == DeploymentState::kFailed)
    known->second->error = Error(ErrorCode::kInvalidPackage, newest->second->reason);
  tickets_.erase(known);
  ended_.notify_all();
}

void DeploymentServiceImpl::show(const storage::DeploymentRow& row) {
  const EntryPtr before = find(row.name);
  if (before && before->revision == row.revision) return;
  const auto entry = std::make_shared<const Entry>(entry_of(row, before));
  settle_ticket(row.name, *entry);
  set(row.name, entry);
  unobserved_.insert(row.name);
}

void DeploymentServiceImpl::observe_or_later(const std::string& name, const Entry& entry) {
  try {
    observe(name, entry);
  } catch (const Error&) {
    // The name is noted; the next look tells.
  }
}

void DeploymentServiceImpl::refresh(const std::string& name) {
  if (const auto row = catalog_.find_deployment(name)) {
    show(*row);
    if (const EntryPtr entry = find(name)) observe_or_later(name, *entry);
  } else {
    forget(name);
  }
}

std::vector<std::pair<std::string, DeploymentServiceImpl::EntryPtr>> DeploymentServiceImpl::entries() {
  const std::shared_lock lock(mutex_);
  return {live_.begin(), live_.end()};
}

void DeploymentServiceImpl::follow() {
  {
    const std::lock_guard change(changes_);
    const std::string mark = catalog_.deployments_mark();
    if (mark != seen_) {
      std::set<std::string> there;
      if (seen_.empty()) {
        for (const storage::DeploymentRow& row : catalog_.list_deployments()) show(row);
      }
      for (const auto& [name, revision] : catalog_.deployment_revisions()) {
        there.insert(name);
        const EntryPtr known = find(name);
        if (!known || known->revision != revision) refresh(name);
      }
      for (const auto& [name, entry] : entries()) {
        if (!there.contains(name)) forget(name);
      }
      // Before the rows that the last process left are written over.
      if (seen_.empty()) count_crashes();
      seen_ = mark;
      is_known_ = true;
    }
  }
  for (bool more = true; more && !stop_.stop_requested();) {
    const std::lock_guard change(changes_);
    more = observe_some();
  }
  take_up_lost_loads();
  load_wanted();
}

void DeploymentServiceImpl::take_up_lost_loads() {
  std::vector<std::pair<std::string, EntryPtr>> loading;
  for (auto& one : entries()) {
    if (one.second->loading) loading.push_back(std::move(one));
  }
  if (loading.empty()) return;
  std::set<std::string> live;
  for (const storage::ReplicaRow& replica : catalog_.list_replicas()) {
    if (replica.is_live && replica.name != options_.replica) live.insert(replica.name);
  }
  for (const auto& [name, entry] : loading) {
    if (stop_.stop_requested() || live.contains(entry->loader) || !belongs_here(entry->loading->spec))
      continue;
    {
      const std::lock_guard change(changes_);
      const auto ticket = tickets_.find(name);
      if (ticket == tickets_.end() || !ticket->second->is_elsewhere) continue;
      ticket->second->is_elsewhere = false;
    }
    try {
      restore_loading(name, entry->loading);
    } catch (const Error& error) {
      const std::lock_guard change(changes_);
      if (const auto ticket = tickets_.find(name); ticket != tickets_.end())
        ticket->second->is_elsewhere = true;
      // Another one was faster.
      if (error.code() != ErrorCode::kConflict) throw;
    }
  }
}

void DeploymentServiceImpl::load_wanted() {
  std::vector<std::pair<std::string, int>> wanted;
  for (const auto& [name, entry] : entries()) {
    for (const auto& [number, version] : entry->versions) {
      const bool waits = version->state == DeploymentState::kLoading && !version->package;
      if (waits && !version->demanded) wanted.emplace_back(name, number);
    }
  }
  for (const auto& [name, number] : wanted) {
    if (!stop_.stop_requested()) restore_version(name, number);
  }
  if (stop_.stop_requested()) return;
  for (const auto& [name, number] : wanted) replace_failed_default(name);
}

std::vector<services::ReplicaState> DeploymentServiceImpl::replica_states(const std::string& name) {
  const EntryPtr entry = find(name);
  std::vector<services::ReplicaState> states;
  if (!entry) return states;
  const std::vector<storage::ObservedRow> rows = catalog_.list_observed(name);
  for (const storage::ReplicaRow& replica : catalog_.list_replicas()) {
    if (!replica.is_live) continue;
    services::ReplicaState state;
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.replica == replica.name; });
    if (row != rows.end() && row->revision >= entry->revision)
      state = state_in(parse_json(row->state), entry->default_version);
    state.replica = replica.name;
    states.push_back(std::move(state));
  }
  return states;
}

bool DeploymentServiceImpl::have_followed(const std::string& name) {
  const EntryPtr entry = find(name);
  if (!entry) return true;
  const std::vector<storage::ObservedRow> rows = catalog_.list_observed(name);
  const std::vector<storage::ReplicaRow> replicas = catalog_.list_replicas();
  return std::all_of(replicas.begin(), replicas.end(), [&](const storage::ReplicaRow& replica) {
    if (!replica.is_live) return true;
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.replica == replica.name; });
    return row != rows.end() && row->revision >= entry->revision && is_settled(parse_json(row->state));
  });
}

bool DeploymentServiceImpl::wait_for_replicas(const std::string& name, std::unique_lock<std::mutex>& change,
                                              const std::stop_token& cancelled) {
  const auto deadline = steady_clock::now() + options_.ready_wait;
  while (!cancelled.stop_requested() && !stop_.stop_requested() && steady_clock::now() < deadline) {
    const uint64_t seen = notices_;
    try {
      if (have_followed(name)) return true;
    } catch (const Error&) {
      return false;  // It is stored; who has it is not known now.
    }
    ended_.wait_for(change, cancelled, kFollowLook, [&] { return notices_ != seen; });
  }
  return false;
}

}  // namespace tensormill::server
