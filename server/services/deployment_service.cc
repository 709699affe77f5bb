#include "server/services/deployment_service.h"

#include <algorithm>
#include <chrono>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/forms.h"
#include "server/services/package_archive.h"
#include "server/services/package_service.h"

namespace tensormill::server {

namespace {

/// Loads that ended with the death of the process, after which a deployment is not tried again.
constexpr int kMaxFatalLoads = 2;

[[noreturn]] void refuse(ErrorCode code, const std::string& pointer, const std::string& detail) {
  throw Error(code, pointer.substr(1) + ": " + detail, {{pointer, detail}});
}

void check_batch(const services::DeploymentSpec& spec, const std::vector<services::TensorSpec>& inputs) {
  if (spec.max_batch == 1) return;
  int64_t largest = 1;
  if (!inputs.empty() && !inputs.front().shape.empty()) {
    if (const int64_t* extent = std::get_if<int64_t>(&inputs.front().shape.front())) largest = *extent;
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

}  // namespace

DeploymentServiceImpl::LivePtr DeploymentServiceImpl::find(const std::string& name) {
  const std::shared_lock lock(mutex_);
  const auto entry = live_.find(name);
  return entry == live_.end() ? nullptr : entry->second;
}

DeploymentServiceImpl::LivePtr DeploymentServiceImpl::require(const std::string& name) {
  LivePtr live = find(name);
  if (!live) throw Error(ErrorCode::kNotFound, "there is no deployment \"" + name + "\"");
  return live;
}

DeploymentServiceImpl::LivePtr DeploymentServiceImpl::require_ready(const std::string& name) {
  LivePtr live = require(name);
  if (live->state != services::DeploymentState::kReady) {
    throw Error(ErrorCode::kUnavailable, "deployment \"" + name + "\" is " +
                                             std::string(services::deployment_state_name(live->state)) +
                                             ": " + live->reason);
  }
  return live;
}

void DeploymentServiceImpl::set(const std::string& name, LivePtr live) {
  // The old package is unloaded after its last request, outside of the lock.
  const std::unique_lock lock(mutex_);
  live_[name].swap(live);
}

std::vector<std::string> DeploymentServiceImpl::read_labels(const services::DeploymentSpec& spec) {
  if (!spec.labels_blob) return spec.labels;
  const auto digest = Digest::parse(*spec.labels_blob);
  if (!digest || !blobs_.exists(*digest)) {
    refuse(ErrorCode::kInvalidArgument, "/labels", "there is no blob " + *spec.labels_blob);
  }
  return lines_of(blobs_.open(*digest)->text());
}

DeploymentServiceImpl::LivePtr DeploymentServiceImpl::load(const services::DeploymentSpec& spec,
                                                           services::Timestamp created_at) {
  if (spec.isolation != "none") {
    refuse(ErrorCode::kNotSupported, "/isolation", "\"" + spec.isolation + "\" is not implemented yet");
  }
  const auto digest = Digest::parse(spec.package);
  const auto row = digest ? catalog_.find_package(*digest) : std::nullopt;
  if (!row) refuse(ErrorCode::kInvalidArgument, "/package", "there is no package \"" + spec.package + "\"");
  const auto live = std::make_shared<Live>();
  live->spec = spec;
  live->created_at = created_at;
  live->labels = read_labels(spec);
  live->package =
      host_.load(open_package(open_members(blobs_, *row)), {spec.instances, spec.max_queue, spec.warmup});
  check_batch(spec, live->package->inputs());
  return live;
}

void DeploymentServiceImpl::store(const std::string& name, const Live& live, int load_attempts) {
  storage::DeploymentRow row;
  row.name = name;
  row.desired = canonical_json({{"spec", spec_to_json(live.spec)},
                                {"created_ms", live.created_at.ms},
                                {"load_attempts", load_attempts}});
  row.versions = canonical_json({{live.spec.version,
                                  {{"package", live.spec.package},
                                   {"state", services::deployment_state_name(live.state)},
                                   {"reason", live.reason}}}});
  row.packages = {Digest::parse(live.spec.package).value()};
  catalog_.put_deployment(row);
}

void DeploymentServiceImpl::restore() {
  const std::lock_guard change(changes_);
  for (const storage::DeploymentRow& row : catalog_.list_deployments()) restore_one(row);
}

void DeploymentServiceImpl::restore_one(const storage::DeploymentRow& row) {
  const Json desired = parse_json(row.desired);
  Live pending;
  pending.spec = spec_from_json(desired.at("spec"));
  pending.created_at = {desired.at("created_ms").get<int64_t>()};
  pending.state = services::DeploymentState::kFailed;
  const int attempts = desired.at("load_attempts").get<int>();
  if (attempts >= kMaxFatalLoads) {
    pending.reason = "load: the process died " + std::to_string(attempts) + " times while it was loaded";
    set(row.name, std::make_shared<const Live>(pending));
    return;
  }
  store(row.name, pending, attempts + 1);
  try {
    LivePtr live = load(pending.spec, pending.created_at);
    store(row.name, *live, 0);
    set(row.name, std::move(live));
  } catch (const Error& error) {
    pending.reason = error.message();
    store(row.name, pending, 0);
    set(row.name, std::make_shared<const Live>(pending));
  }
}

services::PutResult DeploymentServiceImpl::put(const std::string& name, const services::DeploymentSpec& spec,
                                               const services::CallContext&) {
  const std::lock_guard change(changes_);
  const LivePtr before = find(name);
  const bool same = before && before->state == services::DeploymentState::kReady &&
                    spec_to_json(before->spec) == spec_to_json(spec);
  if (same) return {describe(name, *before), false, true};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const services::Timestamp created =
      before ? before->created_at
             : services::Timestamp{std::chrono::duration_cast<std::chrono::milliseconds>(now).count()};
  LivePtr live = load(spec, created);
  store(name, *live, 0);
  set(name, live);
  return {describe(name, *live), before == nullptr, true};
}

services::Deployment DeploymentServiceImpl::describe(const std::string& name, const Live& live) {
  services::Deployment deployment;
  deployment.name = name;
  deployment.versions = {{live.spec.version, live.spec.package, live.state, live.reason}};
  if (live.state == services::DeploymentState::kReady) deployment.default_version = live.spec.version;
  if (live.package) {
    deployment.inputs = live.package->inputs();
    deployment.outputs = live.package->outputs();
  }
  deployment.created_at = live.created_at;
  return deployment;
}

services::Page<services::Deployment> DeploymentServiceImpl::list(const services::PageQuery& page) {
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

services::Deployment DeploymentServiceImpl::get(const std::string& name) {
  return describe(name, *require(name));
}

void DeploymentServiceImpl::remove(const std::string& name, const std::optional<std::string>& version,
                                   const services::CallContext&) {
  const std::lock_guard change(changes_);
  const LivePtr live = require(name);
  if (version && *version != live->spec.version) {
    throw Error(ErrorCode::kNotFound, "deployment \"" + name + "\" has no version \"" + *version + "\"");
  }
  catalog_.remove_deployment(name);
  const std::unique_lock lock(mutex_);
  live_.erase(name);
}

services::RunResult DeploymentServiceImpl::infer(const std::string& name, services::NamedTensors inputs,
                                                 const services::RunOptions& options,
                                                 const services::CallContext& context) {
  return require_ready(name)->package->run(inputs, options, context);
}

}  // namespace tensormill::server
