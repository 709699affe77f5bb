// How versions of deployments are loaded: by a PUT and at the start of the process.
#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "server/services/deployments/deployment_service.h"
#include "server/services/deployments/sequenced_package.h"
#include "server/services/forms.h"
#include "server/services/store/package_archive.h"
#include "server/services/store/package_service.h"

namespace tensormill::server {

namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& pointer, const std::string& detail) {
  throw Error(code, pointer.substr(1) + ": " + detail, {{pointer, detail}});
}

/// Where the first dim is free, loading the package tells for which batches it has kernels.
void check_batch(const services::DeploymentSpec& spec, const std::vector<services::TensorSpec>& inputs) {
  if (spec.max_batch == 1) return;
  int64_t largest = 1;
  if (!inputs.empty() && !inputs.front().shape.empty()) {
    const int64_t* extent = std::get_if<int64_t>(&inputs.front().shape.front());
    if (extent == nullptr) return;
    largest = *extent;
  }
  if (spec.max_batch <= largest) return;
  refuse(ErrorCode::kInvalidArgument, "/max_batch",
         "is " + std::to_string(spec.max_batch) + ", the package takes at most " + std::to_string(largest));
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    if (!lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Set when loading a version has crashed the process too often to be tried again.
std::optional<Error> too_many_crashes(int crashes) {
  if (crashes < kMaxCrashedLoads) return std::nullopt;
  return Error(ErrorCode::kInvalidPackage,
               "load: the process crashed " + std::to_string(crashes) + " times while it was loaded");
}

std::shared_ptr<HostedPackage> with_sequences(std::shared_ptr<HostedPackage> package,
                                              const services::DeploymentSpec& spec) {
  if (!spec.sequence) return package;
  return std::make_shared<SequencedPackage>(std::move(package), *spec.sequence, spec.max_batch);
}

/// Rows are what every output has, whatever it is asked for.
void check_decoupled(const services::DeploymentSpec& spec, const HostedPackage& package) {
  if (!spec.decoupled) return;
  for (const services::TensorSpec& output : package.outputs()) {
    if (output.shape.empty())
      refuse(ErrorCode::kInvalidArgument, "/decoupled", "output \"" + output.name + "\" has no rows");
  }
}

/// A warm-up that runs out of time is the package's fault here, not the request's.
Error as_load_failure(Error error) {
  if (error.code() != ErrorCode::kDeadlineExceeded) return error;
  return Error(ErrorCode::kInvalidPackage, error.message());
}

}  // namespace

DeploymentServiceImpl::~DeploymentServiceImpl() {
  idler_ = std::jthread();
  for (Loader& loader : loaders_) loader.thread.join();
}

std::vector<std::string> DeploymentServiceImpl::read_labels(const services::DeploymentSpec& spec) {
  if (!spec.labels_blob) return spec.labels;
  const auto digest = Digest::parse(*spec.labels_blob);
  if (!digest || !blobs_.exists(*digest)) {
    refuse(ErrorCode::kInvalidArgument, "/labels", "there is no blob " + *spec.labels_blob);
  }
  return lines_of(blobs_.open(*digest)->text());
}

void DeploymentServiceImpl::check(const services::DeploymentSpec& spec) {
  if (spec.isolation != "none" && (spec.isolation != "process" || !options_.load_isolated)) {
    refuse(ErrorCode::kNotSupported, "/isolation", "\"" + spec.isolation + "\" is not known here");
  }
  check_placement(spec);
  const auto digest = Digest::parse(spec.package);
  if (!digest || !catalog_.find_package(*digest)) {
    refuse(ErrorCode::kInvalidArgument, "/package", "there is no package \"" + spec.package + "\"");
  }
}

DeploymentServiceImpl::VersionPtr DeploymentServiceImpl::load(const services::DeploymentSpec& spec) {
  check(spec);
  const auto version = std::make_shared<Version>();
  version->spec = spec;
  version->spec.weights.clear();
  if (spec.placement.mode == "demand") {
    version->last_use = std::make_shared<LastUse>();
    touch(*version);
  }
  version->state = services::DeploymentState::kReady;
  version->labels = read_labels(spec);
  const storage::PackageRow row = require_package(catalog_, spec.package);
  if (options_.admit) options_.admit(row);
  const MemberBlobs members = open_members(blobs_, row, stop_.get_token());
  const auto package = open_package(members, stop_.get_token());
  check_batch(spec, specs_of(package->metadata().inputs));
  if (spec.max_batch > 1 && package::is_model_step(package->plan()))
    refuse(ErrorCode::kInvalidArgument, "/max_batch",
           "is " + std::to_string(spec.max_batch) + ", each run of the package is interpreted by itself");
  HostOptions options{spec.instances, spec.max_queue, spec.warmup, spec.max_batch,
                      std::chrono::microseconds(spec.max_delay_us)};
  options.stop = stop_.get_token();
  // What the model brings, where the deployment says nothing of its own.
  if (!package->metadata().inputs.empty()) version->picture = package->metadata().inputs.front().notes;
  for (const package::TensorInfo& output : package->metadata().outputs) {
    if (version->labels.empty()) version->labels = output.notes.labels;
  }
  if (spec.isolation == "process") {
    version->package = with_sequences(options_.load_isolated(members, options), spec);
    check_decoupled(spec, *version->package);
    check_pictures(*version);
    return version;
  }
  if (package->plans().model && options_.run_apart)
    options.run_apart = [run = options_.run_apart, members](const services::NamedTensors& inputs,
                                                            const services::RunOptions& run_options,
                                                            const std::stop_token& cancelled) {
      return run(members, inputs, run_options, cancelled);
    };
  version->package = with_sequences(host_.load(package, options), spec);
  check_decoupled(spec, *version->package);
  check_pictures(*version);
  return version;
}

/// Null, and `error` is set, when it cannot be loaded. No exception leaves: the caller may be a thread's end.
DeploymentServiceImpl::VersionPtr DeploymentServiceImpl::try_load(const services::DeploymentSpec& spec,
                                                                  std::optional<Error>& error) {
  try {
    const CrashMark::Loading loading(options_.crash_mark);
    return load(spec);
  } catch (const Error& thrown) {
    error = as_load_failure(thrown);
  } catch (const std::exception& thrown) {
    error = Error(ErrorCode::kInternal, thrown.what());
  }
  return nullptr;
}

void DeploymentServiceImpl::begin_load(const std::string& name, const VersionPtr& version,
                                       const std::shared_ptr<Ticket>& ticket) {
  loaders_.remove_if([](Loader& loader) {
    if (!loader.ticket->done) return false;
    loader.thread.join();
    return true;
  });
  loaders_.push_back({ticket, std::thread([this, name, version, ticket] {
                        std::optional<Error> error;
                        const VersionPtr loaded = load_with_room(version->spec, error);
                        end_load(name, version, *ticket, loaded, error);
                      })});
}

void DeploymentServiceImpl::end_load(const std::string& name, const VersionPtr& version, Ticket& ticket,
                                     const VersionPtr& loaded, const std::optional<Error>& error) {
  const std::lock_guard change(changes_);
  const EntryPtr before = find(name);
  ticket.done = true;
  if (!before || before->loading != version) {
    ticket.error = Error(ErrorCode::kConflict, "deployment \"" + name + "\" was removed while it was loaded");
  } else {
    ticket.error = error;
    // When the store fails, what was served before goes on, and the row still says that this shall be loaded.
    const auto give_up = [&](const Error& thrown) {
      ticket.error = thrown;
      const EntryPtr now = find(name);
      if (!now || now->loading != version) return;
      Entry entry = *now;
      entry.loading = nullptr;
      // A replica looks at the row again, which may still say that this one loads it.
      entry.revision = -1;
      if (is_replica()) seen_ = "-";
      set(name, std::make_shared<const Entry>(std::move(entry)));
    };
    try {
      if (!loaded && stop_.stop_requested() && ticket.acknowledged) {
        put_off(name, *before, version);
      } else {
        settle_again(name, version, loaded, error, ticket.acknowledged);
      }
    } catch (const Error& thrown) {
      give_up(thrown);
    } catch (const std::exception& thrown) {
      give_up(Error(ErrorCode::kInternal, thrown.what()));
    }
  }
  const auto known = tickets_.find(name);
  if (known != tickets_.end() && known->second.get() == &ticket) tickets_.erase(known);
  ended_.notify_all();
}

/// Another replica may have changed the row meanwhile, such as by taking a version away.
void DeploymentServiceImpl::settle_again(const std::string& name, const VersionPtr& version,
                                         const VersionPtr& loaded, const std::optional<Error>& error,
                                         bool keep_failure) {
  constexpr int kTries = 8;
  for (int attempt = 1;; ++attempt) {
    const EntryPtr before = find(name);
    if (!before || before->loading != version)
      throw Error(ErrorCode::kConflict, "deployment \"" + name + "\" was removed while it was loaded");
    try {
      return settle(name, *before, version, loaded, error, keep_failure);
    } catch (const Error& thrown) {
      if (!is_replica() || thrown.code() != ErrorCode::kConflict || attempt == kTries) throw;
    }
    refresh(name);
  }
}

void DeploymentServiceImpl::put_off(const std::string& name, const Entry& before, const VersionPtr& version) {
  if (is_replica()) return;  // another one takes it up when this one's lease is over
  auto wanted = std::make_shared<Version>(*version);
  wanted->load_begun = false;
  Entry entry = before;
  entry.loading = std::move(wanted);
  store(name, entry);
  set(name, std::make_shared<const Entry>(std::move(entry)));
}

/// The entry after a load, stored and visible.
void DeploymentServiceImpl::settle(const std::string& name, const Entry& before, const VersionPtr& version,
                                   VersionPtr loaded, const std::optional<Error>& error, bool keep_failure) {
  const int number = version_number(version->spec.version);
  Entry entry = before;
  entry.loading = nullptr;
  std::vector<storage::RepeatKey> done = std::exchange(entry.asked, {});
  if (!loaded) done.clear();
  if (loaded) {
    entry.retained = nullptr;
    const auto keep = static_cast<size_t>(version->spec.keep_versions);
    entry.versions[number] = std::move(loaded);
    services::VersionWeights weights = version->spec.weights;
    std::erase_if(weights, [&](const auto& one) { return !entry.versions.contains(one.first); });
    move_traffic(entry, before, weights, number);
    const auto serves = [&](int one) {
      return one == number || one == entry.default_version || entry.weights.contains(one);
    };
    for (auto oldest = entry.versions.begin();
         oldest != entry.versions.end() && entry.versions.size() > keep;) {
      oldest = serves(oldest->first) ? std::next(oldest) : entry.versions.erase(oldest);
    }
  } else if (keep_failure) {
    auto failed = std::make_shared<Version>();
    const auto serving = before.versions.find(number);
    const bool replaces = serving != before.versions.end() && serving->second->package != nullptr;
    if (replaces) *failed = *serving->second;
    if (!replaces) {
      failed->spec = version->spec;
      failed->spec.weights.clear();
      failed->crashed_loads = version->crashed_loads;
      failed->state = services::DeploymentState::kFailed;
    }
    failed->reason = (replaces ? "its replacement failed: " : "") + error->message();
    entry.versions[number] = std::move(failed);
  }
  if (entry.versions.empty()) {
    remove_row(name, entry);
    forget(name);
    return;
  }
  store(name, entry, done);
  set(name, std::make_shared<const Entry>(std::move(entry)));
}

void DeploymentServiceImpl::adopt() {
  if (is_replica()) return;  // follow() shows it
  const std::lock_guard change(changes_);
  std::vector<BegunLoad> begun;
  std::vector<std::string> named;  // rows that tell of such loads
  for (const storage::DeploymentRow& row : catalog_.list_deployments()) {
    const DesiredDeployment desired = desired_for(options_.build, row.desired);
    bool tells = false;
    const auto adopted = [&](const DesiredVersion& wanted, bool is_put) {
      auto version = std::make_shared<Version>();
      version->spec = wanted.spec;
      version->crashed_loads = wanted.crashed_loads;
      tells = tells || wanted.load_begun;
      if (wanted.load_begun && wanted.build == options_.build)
        begun.push_back({row.name, version_number(wanted.spec.version), wanted.spec.package, is_put});
      if (wanted.unloaded) version->state = services::DeploymentState::kUnloaded;
      if (wanted.failure.empty()) return version;
      version->reason = wanted.failure;
      version->state = services::DeploymentState::kFailed;
      return version;
    };
    Entry entry;
    entry.created_at = desired.created_at;
    entry.default_version = desired.default_version;
    show_traffic(entry, desired, nullptr);
    for (const DesiredVersion& wanted : desired.versions)
      entry.versions[version_number(wanted.spec.version)] = adopted(wanted, false);
    if (desired.loading) {
      entry.loading = adopted(*desired.loading, true);
      entry.asked = desired.asked;
      tickets_[row.name] = std::make_shared<Ticket>();
      tickets_[row.name]->acknowledged = true;
    }
    if (tells) named.push_back(row.name);
    set(row.name, std::make_shared<const Entry>(std::move(entry)));
  }
  blame_load_of(begun);
  // Loads of this process alone are told of from now on.
  for (const std::string& name : named) {
    Entry entry = *find(name);
    store(name, entry);
  }
}

void DeploymentServiceImpl::restore() {
  if (is_replica()) return follow();
  std::vector<std::pair<std::string, int>> versions;
  std::vector<std::pair<std::string, VersionPtr>> loading;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [name, entry] : live_) {
      for (const auto& [number, version] : entry->versions) {
        if (version->state == services::DeploymentState::kLoading) versions.emplace_back(name, number);
      }
      if (entry->loading) loading.emplace_back(name, entry->loading);
    }
  }
  for (const auto& [name, number] : versions) {
    if (!stop_.stop_requested()) restore_version(name, number);
  }
  for (const auto& [name, version] : loading) {
    if (!stop_.stop_requested()) restore_loading(name, version);
  }
  if (stop_.stop_requested()) return;
  for (const auto& [name, number] : versions) replace_failed_default(name);
}

void DeploymentServiceImpl::unload(const std::string& name) {
  const std::lock_guard change(changes_);
  if (is_replica()) refresh(name);
  Entry entry = *require(name);
  const auto is_loading = [](const auto& one) {
    return one.second->state == services::DeploymentState::kLoading;
  };
  if (entry.loading || std::any_of(entry.versions.begin(), entry.versions.end(), is_loading)) {
    throw Error(ErrorCode::kConflict, "deployment \"" + name + "\" is loading");
  }
  for (auto& [number, version] : entry.versions) {
    auto out = std::make_shared<Version>();
    out->spec = version->spec;
    out->state = services::DeploymentState::kUnloaded;
    version = std::move(out);
  }
  entry.retained = nullptr;
  store(name, entry);
  set(name, std::make_shared<const Entry>(std::move(entry)));
}

void DeploymentServiceImpl::load(const std::string& name) {
  std::vector<int> numbers;
  {
    const std::lock_guard change(changes_);
    if (is_replica()) refresh(name);
    Entry entry = *require(name);
    for (auto& [number, version] : entry.versions) {
      if (version->state == services::DeploymentState::kLoading) {
        throw Error(ErrorCode::kConflict, "deployment \"" + name + "\" is loading");
      }
      if (version->package) continue;
      auto wanted = std::make_shared<Version>();
      wanted->spec = version->spec;
      version = std::move(wanted);
      numbers.push_back(number);
    }
    if (numbers.empty()) return;
    store(name, entry);
    set(name, std::make_shared<const Entry>(std::move(entry)));
  }
  for (const int number : numbers) restore_version(name, number, true);
  const EntryPtr after = require(name);
  for (const int number : numbers) {
    const auto found = after->versions.find(number);
    if (found == after->versions.end() || found->second->package) continue;
    throw Error(ErrorCode::kInvalidPackage, "version " + found->second->spec.version + " of deployment \"" +
                                                name + "\": " + found->second->reason);
  }
}

/// A version that was ready before this process.
void DeploymentServiceImpl::restore_version(const std::string& name, int number, bool demanded) {
  VersionPtr expected;
  // What a request has changed meanwhile stays.
  const auto replace = [&](VersionPtr version) {
    const std::lock_guard change(changes_);
    const EntryPtr before = find(name);
    const auto found = before ? before->versions.find(number) : std::map<int, VersionPtr>::const_iterator();
    if (!before || found == before->versions.end() || (expected && found->second != expected)) return false;
    Entry entry = *before;
    entry.versions[number] = version;
    if (number == entry.default_version && version->package) entry.retained = nullptr;
    store_local(name, entry);
    set(name, std::make_shared<const Entry>(std::move(entry)));
    expected = std::move(version);
    return true;
  };
  const EntryPtr entry = find(name);
  if (!entry || entry->versions.count(number) == 0) return;
  Version pending = *entry->versions.at(number);
  expected = entry->versions.at(number);
  if (VersionPtr rests = resting(pending, demanded)) {
    replace(std::move(rests));
    return;
  }
  std::optional<Error> error = too_many_crashes(pending.crashed_loads);
  VersionPtr loaded;
  if (!error) {
    pending.state = services::DeploymentState::kLoading;
    pending.rests = false;
    pending.demanded = demanded;
    pending.load_begun = true;
    if (!replace(std::make_shared<const Version>(pending))) return;
    loaded = load_with_room(pending.spec, error);
    pending.load_begun = false;
  }
  // A replica looks again soon: what it needs may only be away just now.
  const bool later = is_replica() && error && error->code() == ErrorCode::kUnavailable;
  if (error && demanded) {
    // The next request tries again.
    loaded = rest(pending, error->message());
  } else if (error && (later || stop_.stop_requested())) {
    loaded = std::make_shared<const Version>(pending);
  } else if (error) {
    pending.state = services::DeploymentState::kFailed;
    pending.reason = error->message();
    pending.fails_here = is_replica();
    loaded = std::make_shared<const Version>(pending);
  }
  replace(std::move(loaded));
}

/// A version whose load the process did not live to see the end of.
void DeploymentServiceImpl::restore_loading(const std::string& name, VersionPtr version) {
  std::shared_ptr<Ticket> ticket;
  std::optional<Error> error = too_many_crashes(version->crashed_loads);
  {
    const std::lock_guard change(changes_);
    const EntryPtr before = find(name);
    if (!before || before->loading != version) return;
    ticket = tickets_.at(name);
    auto pending = std::make_shared<Version>(*version);
    if (!error) pending->load_begun = true;
    Entry entry = *before;
    entry.loading = pending;
    entry.loader = options_.replica;
    store(name, entry);
    set(name, std::make_shared<const Entry>(std::move(entry)));
    version = std::move(pending);
  }
  VersionPtr loaded;
  if (!error) loaded = load_with_room(version->spec, error);
  end_load(name, version, *ticket, loaded, error);
}

}  // namespace tensormill::server
