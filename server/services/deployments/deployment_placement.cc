// Where and when versions of deployments are loaded: in all processes, in those with labels, at the first
// request.
#include <algorithm>
#include <iterator>
#include <map>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/deployments/deployment_service.h"

namespace tensormill::server {

namespace {

using services::DeploymentState;
using std::chrono::steady_clock;

/// What others have is asked for at most so often for each version.
constexpr std::chrono::milliseconds kKnownFor{1000};
/// Loads on demand at once, each of which holds the thread of a request.
constexpr size_t kMostWaking = 4;

bool is_on_demand(const services::DeploymentSpec& spec) { return spec.placement.mode == "demand"; }

}  // namespace

DeploymentServiceImpl::DeploymentServiceImpl(storage::BlobStore& blobs, storage::Catalog& catalog,
                                             ExecutorHost& host, DeploymentOptions options)
    : blobs_(blobs), catalog_(catalog), host_(host), options_(std::move(options)) {
  if (options_.idle_look.count() == 0) return;
  idler_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      never.wait_for(lock, stop, options_.idle_look, [] { return false; });
      if (!stop.stop_requested()) rest_idle(steady_clock::now());
    }
  });
}

bool DeploymentServiceImpl::belongs_here(const services::DeploymentSpec& spec) const {
  if (spec.placement.mode != "labels") return true;
  return std::all_of(
      spec.placement.labels.begin(), spec.placement.labels.end(), [&](const std::string& label) {
        return std::find(options_.labels.begin(), options_.labels.end(), label) != options_.labels.end();
      });
}

void DeploymentServiceImpl::check_placement(const services::DeploymentSpec& spec) const {
  if (is_replica() || belongs_here(spec)) return;
  const std::string detail = "are not those of this server (replica.labels), and there is no other";
  throw Error(ErrorCode::kInvalidArgument, "placement/labels " + detail, {{"/placement/labels", detail}});
}

DeploymentServiceImpl::VersionPtr DeploymentServiceImpl::rest(const Version& version,
                                                              const std::string& reason) const {
  auto rests = std::make_shared<Version>();
  rests->spec = version.spec;
  rests->crashed_loads = version.crashed_loads;
  rests->state = DeploymentState::kUnloaded;
  rests->reason = reason;
  rests->inputs = version.package ? version.package->inputs() : version.inputs;
  rests->outputs = version.package ? version.package->outputs() : version.outputs;
  rests->rests = true;
  return rests;
}

DeploymentServiceImpl::VersionPtr DeploymentServiceImpl::resting(const Version& version,
                                                                 bool demanded) const {
  if (!belongs_here(version.spec)) return rest(version, "it is placed on other replicas, by labels");
  if (is_on_demand(version.spec) && !demanded) return rest(version, "it is loaded at the first request");
  return nullptr;
}

void DeploymentServiceImpl::touch(const Version& version) {
  if (version.last_use) version.last_use->ticks = steady_clock::now().time_since_epoch().count();
}

void DeploymentServiceImpl::wake(const std::string& name, const std::string& version) {
  const EntryPtr entry = find(name);
  if (!entry) return;
  const VersionPtr found = find_version(*entry, version);
  if (!version.empty() || entry->weights.empty()) {
    if (found) wake_version(name, version_number(found->spec.version));
    return;
  }
  for (const auto& [number, weight] : entry->weights) wake_version(name, number);
}

void DeploymentServiceImpl::wake_version(const std::string& name, int number) {
  const auto sleeps = [&] {
    const EntryPtr entry = find(name);
    const auto found = entry ? entry->versions.find(number) : std::map<int, VersionPtr>::const_iterator();
    if (!entry || found == entry->versions.end()) return false;
    const Version& version = *found->second;
    return !version.package && is_on_demand(version.spec) && (version.rests || version.demanded);
  };
  if (!sleeps()) return;
  const std::pair<std::string, int> key(name, number);
  {
    std::unique_lock change(changes_);
    if (waking_.contains(key)) {
      ended_.wait_for(change, options_.ready_wait, [&] { return !waking_.contains(key); });
      return;
    }
    if (!sleeps()) return;
    if (waking_.size() >= kMostWaking)
      throw Error(ErrorCode::kUnavailable,
                  std::to_string(kMostWaking) + " deployments are being loaded on demand");
    waking_.insert(key);
  }
  const auto end = [&] {
    const std::lock_guard change(changes_);
    waking_.erase(key);
    ended_.notify_all();
  };
  try {
    restore_version(name, number, true);
  } catch (const std::exception&) {
    end();
    throw;
  }
  end();
}

bool DeploymentServiceImpl::rest_version(const std::string& name, int number, const VersionPtr& version) {
  const std::lock_guard change(changes_);
  const EntryPtr before = find(name);
  const auto found = before ? before->versions.find(number) : std::map<int, VersionPtr>::const_iterator();
  if (!before || found == before->versions.end() || found->second != version) return false;
  Entry entry = *before;
  entry.versions[number] = rest(*version, "it is loaded at the next request");
  if (entry.retained == version) entry.retained = nullptr;
  if (is_replica()) observe_or_later(name, entry);
  set(name, std::make_shared<const Entry>(std::move(entry)));
  return true;
}

void DeploymentServiceImpl::rest_idle(steady_clock::time_point now) {
  for (const auto& [name, entry] : entries()) {
    for (const auto& [number, version] : entry->versions) {
      if (!version->package || !version->last_use) continue;
      const steady_clock::time_point used{steady_clock::duration(version->last_use->ticks.load())};
      if (now - used >= std::chrono::seconds(version->spec.placement.idle_s))
        rest_version(name, number, version);
    }
  }
}

bool DeploymentServiceImpl::rest_one() {
  struct Candidate {
    std::string name;
    int number = 0;
    VersionPtr version;
  };
  std::optional<Candidate> least;
  for (const auto& [name, entry] : entries()) {
    for (const auto& [number, version] : entry->versions) {
      if (!version->package || !version->last_use) continue;
      if (!least || version->last_use->ticks < least->version->last_use->ticks)
        least = Candidate{name, number, version};
    }
  }
  // Somebody else may have unloaded it meanwhile, which is as good.
  if (least) rest_version(least->name, least->number, least->version);
  return least.has_value();
}

DeploymentServiceImpl::VersionPtr DeploymentServiceImpl::load_with_room(const services::DeploymentSpec& spec,
                                                                        std::optional<Error>& error) {
  for (;;) {
    error.reset();
    VersionPtr loaded = try_load(spec, error);
    if (!error || error->code() != ErrorCode::kMemoryBudget || !rest_one()) return loaded;
  }
}

std::vector<std::string> DeploymentServiceImpl::replicas_with(const std::string& name, const Entry& entry,
                                                              const Version& version) {
  const std::string number = version.spec.version;
  const bool has_sequences = version.spec.sequence.has_value();
  std::map<std::string, std::string> found;  // addresses by name, "" for this process
  const std::vector<storage::ObservedRow> rows = catalog_.list_observed(name);
  for (const storage::ReplicaRow& replica : catalog_.list_replicas()) {
    if (!replica.is_live || replica.address.empty()) continue;
    if (replica.name == options_.replica) {
      if (has_sequences && version.package) found[replica.name] = "";
      continue;
    }
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.replica == replica.name; });
    if (row == rows.end() || row->revision < entry.revision) continue;
    const Json state = parse_json(row->state);
    const auto there = state.at("versions").find(number);
    if (there == state.at("versions").end()) continue;
    if (there->at("state") == services::deployment_state_name(DeploymentState::kReady))
      found[replica.name] = replica.address;
  }
  // What a sequence leaves is kept by one process: all send to the first by name.
  if (has_sequences && found.size() > 1) found.erase(std::next(found.begin()), found.end());
  std::vector<std::string> addresses;
  for (const auto& [replica, address] : found) {
    if (!address.empty()) addresses.push_back(address);
  }
  return addresses;
}

std::vector<std::string> DeploymentServiceImpl::elsewhere(const std::string& name,
                                                          const std::string& version) {
  const EntryPtr entry = is_replica() ? find(name) : nullptr;
  if (!entry) return {};
  const VersionPtr found = find_version(*entry, version);
  // What is loaded on demand is loaded here.
  const bool is_here = found && (found->package || (is_on_demand(found->spec) && belongs_here(found->spec)));
  const bool is_shared = version.empty() && !sharing(*entry).empty();
  if (!found || ((is_here || is_shared) && !found->spec.sequence)) return {};
  const std::pair<std::string, int> key(name, version_number(found->spec.version));
  const auto now = steady_clock::now();
  const std::lock_guard lock(known_mutex_);
  const auto known = known_.find(key);
  if (known != known_.end() && now - known->second.when < kKnownFor) return known->second.addresses;
  const std::vector<std::string> before =
      known == known_.end() ? std::vector<std::string>() : known->second.addresses;
  std::erase_if(known_, [&](const auto& one) { return now - one.second.when >= kKnownFor; });
  try {
    return (known_[key] = {now, replicas_with(name, *entry, *found)}).addresses;
  } catch (const Error& error) {
    // Who has it is not known now: the request is answered as it is here, but that sequences stay where they
    // are.
    if (error.code() != ErrorCode::kUnavailable) throw;
    if (!found->spec.sequence) return {};
    return (known_[key] = {now, before}).addresses;
  }
}

}  // namespace tensormill::server
