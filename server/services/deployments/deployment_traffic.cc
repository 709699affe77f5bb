// Which version of a deployment answers: weights, their change, and the way back.
#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/deployments/deployment_service.h"
#include "server/services/forms.h"

namespace tensormill::server {

namespace {

using services::DeploymentState;

[[noreturn]] void refuse_weight(int number, const std::string& detail) {
  const std::string pointer = "/weights/" + std::to_string(number);
  throw Error(ErrorCode::kInvalidArgument, pointer.substr(1) + ": " + detail, {{pointer, detail}});
}

/// Those that have a part; empty where one version has all.
services::VersionWeights parts_of(const services::VersionWeights& weights) {
  services::VersionWeights parts = weights;
  std::erase_if(parts, [](const auto& one) { return one.second == 0; });
  return parts.size() > 1 ? parts : services::VersionWeights();
}

/// The one with the largest part, of equal ones the newest.
int largest(const services::VersionWeights& weights) {
  return std::max_element(weights.begin(), weights.end(),
                          [](const auto& a, const auto& b) {
                            return std::pair(a.second, a.first) < std::pair(b.second, b.first);
                          })
      ->first;
}

}  // namespace

std::map<int, DeploymentServiceImpl::VersionPtr> DeploymentServiceImpl::sharing(const Entry& entry) {
  std::map<int, VersionPtr> ready;
  for (const auto& [number, weight] : entry.weights) {
    const auto found = entry.versions.find(number);
    if (found != entry.versions.end() && found->second->package) ready.emplace(number, found->second);
  }
  return ready;
}

DeploymentServiceImpl::VersionPtr DeploymentServiceImpl::require_next(const std::string& name,
                                                                      const std::string& version) {
  const EntryPtr entry = version.empty() ? find(name) : nullptr;
  if (!entry || entry->weights.empty()) return require_ready(name, version);
  const std::map<int, VersionPtr> ready = sharing(*entry);
  if (ready.empty()) return require_ready(name, version);
  services::VersionWeights weights;
  for (const auto& [number, one] : ready) weights.emplace(number, entry->weights.at(number));
  return ready.at(version_at(weights, entry->split->next()));
}

void DeploymentServiceImpl::move_traffic(Entry& entry, const Entry& before,
                                         const services::VersionWeights& weights, int only) {
  entry.weights = parts_of(weights);
  entry.split = entry.weights.empty() ? nullptr : std::make_shared<TrafficSplit>();
  entry.default_version = weights.empty() ? only : largest(weights);
  const auto had_all = before.versions.find(before.default_version);
  const bool one_had_all = before.weights.empty() && had_all != before.versions.end();
  if (one_had_all) entry.previous = had_all->second->spec;
  if (!entry.weights.empty() || !entry.previous) return;
  // Where the same has all again, there is nothing to go back to but what was there before that.
  const auto has_all = entry.versions.find(entry.default_version);
  if (has_all == entry.versions.end()) return;
  if (spec_to_json(has_all->second->spec) == spec_to_json(*entry.previous))
    entry.previous = one_had_all ? before.previous : std::nullopt;
}

void DeploymentServiceImpl::show_traffic(Entry& entry, const DesiredDeployment& desired,
                                         const EntryPtr& before) {
  entry.weights = desired.weights;
  entry.previous = desired.previous;
  if (entry.weights.empty()) return;
  const bool goes_on = before && before->weights == entry.weights;
  entry.split = goes_on ? before->split : std::make_shared<TrafficSplit>();
}

services::PutResult DeploymentServiceImpl::apply_traffic(const std::string& name,
                                                         const services::VersionWeights& weights, int only,
                                                         const storage::RepeatKey& asked,
                                                         std::unique_lock<std::mutex>& change,
                                                         const std::stop_token& cancelled) {
  const EntryPtr before = require(name);
  Entry entry = *before;
  move_traffic(entry, *before, weights, only);
  const bool same = entry.weights == before->weights && entry.default_version == before->default_version;
  if (!same || !asked.key.empty()) {
    store(name, entry, {asked});
    set(name, std::make_shared<const Entry>(std::move(entry)));
  }
  return put_result(name, false, true, change, cancelled);
}

services::PutResult DeploymentServiceImpl::set_weights(const std::string& name,
                                                       const services::VersionWeights& weights,
                                                       const services::CallContext& context) {
  std::unique_lock change(changes_);
  if (is_replica()) refresh(name);
  const EntryPtr before = require(name);
  if (before->loading) {
    throw Error(ErrorCode::kConflict,
                "version " + before->loading->spec.version + " of deployment \"" + name + "\" is loading");
  }
  for (const auto& [number, weight] : weights) {
    const auto found = before->versions.find(number);
    if (found == before->versions.end()) refuse_weight(number, "there is no such version");
    const Version& version = *found->second;
    const bool is_out = version.state == DeploymentState::kUnloaded ||
                        (version.state == DeploymentState::kFailed && !version.fails_here);
    if (weight > 0 && is_out) {
      throw Error(ErrorCode::kConflict, "version " + version.spec.version + " of deployment \"" + name +
                                            "\" is " + std::string(deployment_state_name(version.state)));
    }
  }
  return apply_traffic(name, weights, 0, {}, change, context.cancelled);
}

services::PutResult DeploymentServiceImpl::rollback(const std::string& name,
                                                    const services::CallContext& context) {
  // Done twice it would bring back what it took away.
  const storage::RepeatKey asked{context.submitter, context.idempotency_key, "rollback " + name};
  std::optional<services::DeploymentSpec> previous;
  {
    std::unique_lock change(changes_);
    if (is_replica()) refresh(name);
    previous = require(name)->previous;
    if (catalog_.was_done(asked)) return put_result(name, false, true, change, context.cancelled);
  }
  if (!previous) {
    throw Error(ErrorCode::kConflict,
                "deployment \"" + name + "\" has no version before this one to go back to");
  }
  return put_once(name, *previous, asked, context.cancelled);
}

/// What does not come back must not keep the others from serving.
void DeploymentServiceImpl::replace_failed_default(const std::string& name) {
  const std::lock_guard change(changes_);
  const EntryPtr before = find(name);
  if (!before) return;
  const auto failed = before->versions.find(before->default_version);
  if (failed == before->versions.end() || failed->second->state != services::DeploymentState::kFailed) return;
  for (auto one = before->versions.rbegin(); one != before->versions.rend(); ++one) {
    if (!one->second->package) continue;
    if (is_replica()) {
      Entry entry = *before;
      entry.retained = one->second;
      set(name, std::make_shared<const Entry>(std::move(entry)));
      return;
    }
    auto serving = std::make_shared<Version>(*one->second);
    serving->reason = "the default in place of version " + failed->second->spec.version +
                      ", which failed: " + failed->second->reason;
    Entry entry = *before;
    entry.default_version = one->first;
    entry.versions[one->first] = std::move(serving);
    store(name, entry);
    set(name, std::make_shared<const Entry>(std::move(entry)));
    return;
  }
}

/// Of a PUT: they name this version or those that are there, and not more than are kept.
void DeploymentServiceImpl::check_weights(const EntryPtr& before, const services::DeploymentSpec& spec) {
  int parts = 0;
  for (const auto& [number, weight] : spec.weights) {
    const bool is_known =
        number == version_number(spec.version) || (before && before->versions.contains(number));
    if (!is_known) refuse_weight(number, "there is no such version");
    if (weight > 0) ++parts;
  }
  if (parts <= spec.keep_versions) return;
  const std::string detail = "spreads requests over " + std::to_string(parts) +
                             " versions, keep_versions is " + std::to_string(spec.keep_versions);
  throw Error(ErrorCode::kInvalidArgument, "weights " + detail, {{"/weights", detail}});
}

}  // namespace tensormill::server
