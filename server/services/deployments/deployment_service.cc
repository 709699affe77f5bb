#include "server/services/deployments/deployment_service.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/forms.h"

namespace tensormill::server {

namespace {

services::Timestamp now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

}  // namespace

DeploymentServiceImpl::EntryPtr DeploymentServiceImpl::find(const std::string& name) {
  const std::shared_lock lock(mutex_);
  const auto entry = live_.find(name);
  return entry == live_.end() ? nullptr : entry->second;
}

void DeploymentServiceImpl::require_known() const {
  if (is_replica() && !is_known_)
    throw Error(ErrorCode::kUnavailable, "this replica does not know yet what is deployed");
}

DeploymentServiceImpl::EntryPtr DeploymentServiceImpl::require(const std::string& name) {
  EntryPtr entry = find(name);
  if (!entry) require_known();
  if (!entry) throw Error(ErrorCode::kNotFound, "there is no deployment \"" + name + "\"");
  return entry;
}

DeploymentServiceImpl::VersionPtr DeploymentServiceImpl::serving(const Entry& entry) {
  const auto found = entry.versions.find(entry.default_version);
  if (found == entry.versions.end()) return entry.retained;
  const bool waits = found->second->state == services::DeploymentState::kLoading || found->second->fails_here;
  return !found->second->package && waits && entry.retained ? entry.retained : found->second;
}

DeploymentServiceImpl::VersionPtr DeploymentServiceImpl::find_version(const Entry& entry,
                                                                      const std::string& version) {
  if (version.empty()) return serving(entry);
  for (const auto& [number, candidate] : entry.versions) {
    if (candidate->spec.version == version) return candidate;
  }
  return nullptr;
}

services::DeploymentSpec DeploymentServiceImpl::spec(const std::string& name, const std::string& version) {
  const EntryPtr entry = require(name);
  const VersionPtr found = version.empty() ? nullptr : find_version(*entry, version);
  if (!found) {
    throw Error(ErrorCode::kNotFound, "deployment \"" + name + "\" has no version \"" + version + "\"");
  }
  return found->spec;
}

DeploymentServiceImpl::VersionPtr DeploymentServiceImpl::require_ready(const std::string& name,
                                                                       const std::string& version) {
  const EntryPtr entry = require(name);
  VersionPtr found = find_version(*entry, version);
  if (!found && version.empty())
    found = entry->versions.empty() ? entry->loading : entry->versions.rbegin()->second;
  if (!found) {
    throw Error(ErrorCode::kNotFound, "deployment \"" + name + "\" has no version \"" + version + "\"");
  }
  if (!found->package) {
    throw Error(ErrorCode::kUnavailable, "version " + found->spec.version + " of deployment \"" + name +
                                             "\" is " +
                                             std::string(services::deployment_state_name(found->state)) +
                                             (found->reason.empty() ? "" : ": " + found->reason));
  }
  return found;
}

void DeploymentServiceImpl::set(const std::string& name, EntryPtr entry) {
  // A package that goes is unloaded after its last request, outside of the lock.
  const std::unique_lock lock(mutex_);
  live_[name].swap(entry);
}

void DeploymentServiceImpl::store(const std::string& name, Entry& entry,
                                  const std::vector<storage::RepeatKey>& done) {
  DesiredDeployment desired;
  desired.created_at = entry.created_at;
  desired.default_version = entry.default_version;
  desired.weights = entry.weights;
  desired.previous = entry.previous;
  storage::DeploymentRow row;
  row.name = name;
  Json states = Json::object();
  const auto add = [&](const Version& version) -> DesiredVersion {
    states[version.spec.version] = {{"package", version.spec.package},
                                    {"state", services::deployment_state_name(version.state)},
                                    {"reason", version.reason}};
    row.packages.push_back(Digest::parse(version.spec.package).value());
    if (version.spec.labels_blob) row.blobs.push_back(Digest::parse(*version.spec.labels_blob).value());
    const bool failed = version.state == services::DeploymentState::kFailed && !version.fails_here;
    // What each process has made of a version is its own, but for why all have given it up.
    const bool is_local = is_replica() && !failed && &version != entry.loading.get();
    return {version.spec,
            is_local ? 0 : version.crashed_loads,
            !is_local && version.load_begun,
            options_.build,
            failed ? version.reason : "",
            version.state == services::DeploymentState::kUnloaded && !version.rests};
  };
  if (entry.loading) {
    desired.loading = add(*entry.loading);
    desired.loader = entry.loader;
    desired.asked = entry.asked;
  }
  for (const auto& [number, version] : entry.versions) desired.versions.push_back(add(*version));
  // Its package may go, which a rollback says; its labels have no other name.
  if (entry.previous && entry.previous->labels_blob)
    row.blobs.push_back(Digest::parse(*entry.previous->labels_blob).value());
  row.desired = desired_to_text(desired);
  row.versions = canonical_json(states);
  if (!is_replica()) {
    catalog_.put_deployment(row, std::nullopt, done);
    return;
  }
  entry.revision = catalog_.put_deployment(row, entry.revision, done);
  observe_or_later(name, entry);
}

/// The package may have gone since it was looked for: the row says whether it is there, in one transaction.
void DeploymentServiceImpl::store_new(const std::string& name, Entry& entry,
                                      const services::DeploymentSpec& spec) {
  try {
    store(name, entry);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    const std::string detail = "there is no package \"" + spec.package + "\"";
    throw Error(ErrorCode::kInvalidArgument, "package: " + detail, {{"/package", detail}});
  }
}

services::PutResult DeploymentServiceImpl::put(const std::string& name, const services::DeploymentSpec& spec,
                                               const services::CallContext& context) {
  return put_once(name, spec, {}, context.cancelled);
}

void DeploymentServiceImpl::ask_also(const std::string& name, const storage::RepeatKey& asked) {
  Entry entry = *require(name);
  const bool is_known = std::find(entry.asked.begin(), entry.asked.end(), asked) != entry.asked.end();
  if (asked.key.empty() || is_known) return;
  entry.asked.push_back(asked);
  store(name, entry);
  set(name, std::make_shared<const Entry>(std::move(entry)));
}

services::PutResult DeploymentServiceImpl::put_once(const std::string& name,
                                                    const services::DeploymentSpec& spec,
                                                    const storage::RepeatKey& asked,
                                                    const std::stop_token& cancelled) {
  std::unique_lock change(changes_);
  if (is_replica()) refresh(name);
  const EntryPtr before = find(name);
  const int number = version_number(spec.version);
  std::shared_ptr<Ticket> ticket;
  if (before && before->loading) {
    const std::string& loading = before->loading->spec.version;
    if (spec_to_json(before->loading->spec) != spec_to_json(spec)) {
      throw Error(ErrorCode::kConflict, "version " + loading + " of deployment \"" + name + "\" is loading");
    }
    ask_also(name, asked);
    ticket = tickets_.at(name);
  } else {
    check_weights(before, spec);
    if (before && before->versions.count(number)) {
      services::DeploymentSpec plain = spec;
      plain.weights.clear();
      const VersionPtr& loaded = before->versions.at(number);
      const bool same = loaded->package && spec_to_json(loaded->spec) == spec_to_json(plain);
      if (same) return apply_traffic(name, spec.weights, number, asked, change, cancelled);
    }
    check(spec);
    if (static_cast<int>(tickets_.size()) >= options_.max_loads) {
      throw Error(ErrorCode::kUnavailable, std::to_string(tickets_.size()) + " deployments are loading");
    }
    const auto version = std::make_shared<Version>();
    version->spec = spec;
    version->load_begun = belongs_here(spec);
    Entry entry = before ? *before : Entry();
    if (!before) entry.created_at = now();
    entry.loading = version;
    entry.loader = belongs_here(spec) ? options_.replica : "";
    entry.asked.clear();
    if (!asked.key.empty()) entry.asked.push_back(asked);
    // The labels may be an upload's: they must not go before the row names them.
    const storage::BlobHold hold(blobs_);
    if (spec.labels_blob) blobs_.keep(Digest::parse(*spec.labels_blob).value());
    store_new(name, entry, spec);
    set(name, std::make_shared<const Entry>(std::move(entry)));
    ticket = std::make_shared<Ticket>();
    tickets_[name] = ticket;
    if (belongs_here(spec)) {
      begin_load(name, version, ticket);
    } else {
      // One of those that it asks for takes it up.
      ticket->acknowledged = true;
      ticket->is_elsewhere = true;
    }
  }
  ended_.wait_for(change, cancelled, options_.ready_wait, [&] { return ticket->done; });
  if (!ticket->done) ticket->acknowledged = true;
  if (ticket->error) throw Error(*ticket->error);
  return put_result(name, !before || before->versions.empty(), ticket->done, change, cancelled);
}

services::PutResult DeploymentServiceImpl::put_result(const std::string& name, bool created, bool done,
                                                      std::unique_lock<std::mutex>& change,
                                                      const std::stop_token& cancelled) {
  const bool ready = done && (!is_replica() || wait_for_replicas(name, change, cancelled));
  return {with_replicas(describe(name, *require(name))), created, ready};
}

/// What the others have, where that can be told now: what serves here is known without the catalog.
services::Deployment DeploymentServiceImpl::with_replicas(services::Deployment deployment) {
  if (!is_replica()) return deployment;
  try {
    deployment.replicas = replica_states(deployment.name);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
  }
  return deployment;
}

services::Deployment DeploymentServiceImpl::describe(const std::string& name, const Entry& entry) {
  services::Deployment deployment;
  deployment.name = name;
  std::map<int, VersionPtr> shown = entry.versions;
  if (entry.loading) shown.try_emplace(version_number(entry.loading->spec.version), entry.loading);
  for (const auto& [number, version] : shown) {
    services::DeploymentVersion one;
    one.version = version->spec.version;
    one.package = version->spec.package;
    one.state = version->state;
    one.reason = version->reason;
    one.max_batch = version->spec.max_batch;
    one.max_delay_us = version->spec.max_delay_us;
    one.instances = version->spec.instances;
    one.sequence = version->spec.sequence;
    one.decoupled = version->spec.decoupled;
    if (version->spec.preprocess) {
      one.layout = version->spec.preprocess->layout;
      one.takes_pictures = version->spec.preprocess->encoded;
    }
    one.inputs = version->package ? version->package->inputs() : version->inputs;
    one.outputs = version->package ? version->package->outputs() : version->outputs;
    deployment.versions.push_back(one);
    if (number != entry.default_version || (!version->package && !version->rests)) continue;
    deployment.default_version = version->spec.version;
    deployment.inputs = std::move(one.inputs);
    deployment.outputs = std::move(one.outputs);
  }
  deployment.created_at = entry.created_at;
  deployment.weights = entry.weights;
  if (entry.previous) {
    deployment.previous_version = entry.previous->version;
    deployment.previous_package = entry.previous->package;
  }
  return deployment;
}

services::Page<services::Deployment> DeploymentServiceImpl::list(const services::PageQuery& page) {
  require_known();
  services::Page<services::Deployment> result;
  const std::shared_lock lock(mutex_);
  auto entry = page.cursor.empty() ? live_.begin() : live_.upper_bound(page.cursor);
  for (; entry != live_.end(); ++entry) {
    if (static_cast<int>(result.items.size()) == page.limit) {
      result.next_cursor = result.items.back().name;
      break;
    }
    result.items.push_back(describe(entry->first, *entry->second));
  }
  return result;
}

bool DeploymentServiceImpl::has(const std::string& name) { return find(name) != nullptr; }

bool DeploymentServiceImpl::is_quick(const std::string& name) {
  const EntryPtr entry = find(name);
  if (!entry) return false;
  const auto is_quick = [](const VersionPtr& one) {
    // A run may be, and the pictures before it may be large.
    const bool decodes = one && one->spec.preprocess && one->spec.preprocess->encoded;
    return one && one->package && !decodes && one->package->is_quick();
  };
  const std::map<int, VersionPtr> shared = sharing(*entry);
  return shared.empty() ? is_quick(serving(*entry))
                        : std::all_of(shared.begin(), shared.end(),
                                      [&](const auto& one) { return is_quick(one.second); });
}

uint64_t DeploymentServiceImpl::largest_inputs(const std::string& name) {
  const EntryPtr entry = find(name);
  const VersionPtr version = entry ? serving(*entry) : nullptr;
  return version && version->package ? version->package->largest_inputs() : 0;
}

std::vector<services::InferStatistics> DeploymentServiceImpl::statistics(const std::string& name,
                                                                         const std::string& version) {
  std::vector<services::InferStatistics> all;
  const auto add = [&](const Version& one) {
    all.push_back(one.package->statistics());
    all.back().version = one.spec.version;
  };
  if (!version.empty()) {
    add(*require_ready(name, version));
    return all;
  }
  for (const auto& [number, one] : require(name)->versions) {
    if (one->package) add(*one);
  }
  return all;
}

services::Deployment DeploymentServiceImpl::get(const std::string& name) {
  return with_replicas(describe(name, *require(name)));
}

void DeploymentServiceImpl::remove(const std::string& name, const std::optional<std::string>& version,
                                   const services::CallContext&) {
  const std::lock_guard change(changes_);
  if (is_replica()) refresh(name);
  Entry entry = *require(name);
  if (version) {
    const auto found = std::find_if(entry.versions.begin(), entry.versions.end(),
                                    [&](const auto& one) { return one.second->spec.version == *version; });
    if (found == entry.versions.end()) {
      throw Error(ErrorCode::kNotFound, "deployment \"" + name + "\" has no version \"" + *version + "\"");
    }
    if (found->first == entry.default_version && (entry.versions.size() > 1 || entry.loading)) {
      throw Error(ErrorCode::kInUse, "version " + *version + " of deployment \"" + name +
                                         "\" is the default one, and there are others");
    }
    if (entry.weights.contains(found->first)) {
      throw Error(ErrorCode::kInUse,
                  "version " + *version + " of deployment \"" + name + "\" has a part of the requests");
    }
    entry.versions.erase(found);
    if (!entry.versions.empty() || entry.loading) {
      store(name, entry);
      set(name, std::make_shared<const Entry>(std::move(entry)));
      return;
    }
  }
  catalog_.remove_deployment(name);
  forget(name);
}

void DeploymentServiceImpl::forget(const std::string& name) {
  // The package is unloaded after the lock.
  EntryPtr gone;
  const std::unique_lock lock(mutex_);
  const auto known = live_.find(name);
  if (known == live_.end()) return;
  known->second.swap(gone);
  live_.erase(known);
}

std::shared_ptr<void> DeploymentServiceImpl::admit(const std::string& name, const std::string& version) {
  /// The place is in the package, which therefore goes after it.
  struct Admission {
    VersionPtr live;
    std::shared_ptr<void> place;
  };
  auto admission = std::make_shared<Admission>();
  wake(name, version);
  // Which of those that share the requests has this one is known when it runs; one with room is enough here.
  const EntryPtr entry = version.empty() ? find(name) : nullptr;
  std::map<int, VersionPtr> shared = entry ? sharing(*entry) : std::map<int, VersionPtr>();
  if (shared.empty()) shared.emplace(0, require_ready(name, version));
  for (auto one = shared.begin(); one != shared.end(); ++one) {
    try {
      admission->live = one->second;
      touch(*one->second);
      admission->place = one->second->package->admit();
      return admission;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable || std::next(one) == shared.end()) throw;
    }
  }
  return admission;
}

std::shared_ptr<void> DeploymentServiceImpl::input_room(const std::string& name, const std::string& version,
                                                        size_t bytes) {
  const EntryPtr entry = find(name);
  // Memory of one version's runs is of no use to another's.
  const bool is_shared = entry && version.empty() && !entry->weights.empty();
  const VersionPtr found = entry && !is_shared ? find_version(*entry, version) : nullptr;
  return found && found->package ? found->package->input_room(bytes) : nullptr;
}

DeploymentServiceImpl::VersionPtr DeploymentServiceImpl::require_for(const std::string& name,
                                                                     const std::string& version,
                                                                     const services::RunOptions& options) {
  // A sequence stays with the version that most requests have.
  VersionPtr found = options.sequence ? require_ready(name, version) : require_next(name, version);
  if (options.sequence && !found->spec.sequence)
    throw Error(ErrorCode::kNotSupported, "version " + found->spec.version + " of deployment \"" + name +
                                              "\" has no sequences: each request is by itself");
  return found;
}

void DeploymentServiceImpl::infer(const std::string& name, const std::string& version,
                                  services::NamedTensors inputs, const services::RunOptions& options,
                                  const services::CallContext& context,
                                  services::Done<services::RunResult> done) {
  using Outcome = services::Outcome<services::RunResult>;
  const VersionPtr serving = require_for(name, version, options);
  touch(*serving);
  uint64_t bytes = 0;
  for (const auto& input : inputs) bytes += input.second.num_bytes();
  serving->package->run(std::move(inputs), options, context,
                        [serving, bytes, done = std::move(done)](Outcome run) {
                          done(Outcome::of([&] {
                            services::RunResult result = run.take();
                            serving->package->note_inputs(bytes);
                            result.version = serving->spec.version;
                            result.decoupled = serving->spec.decoupled;
                            result.labels = {serving, &serving->labels};
                            return result;
                          }));
                        });
}

}  // namespace tensormill::server
