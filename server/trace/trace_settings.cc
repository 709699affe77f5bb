#include "server/trace/trace_settings.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::trace {

namespace {

constexpr size_t kMostModels = 10'000;
constexpr int kPercents = 100;

template <typename Value>
void set_member(std::optional<std::optional<Value>>& member,
                const std::optional<std::optional<Value>>& change) {
  if (!change) return;
  if (*change) {
    member = change;
  } else {
    member.reset();
  }
}

void apply(services::TraceChange& set, const services::TraceChange& change) {
  set_member(set.is_on, change.is_on);
  set_member(set.rate, change.rate);
  set_member(set.count, change.count);
}

void overlay(services::TraceSetting& setting, const services::TraceChange& set) {
  if (set.is_on) setting.is_on = set.is_on->value_or(setting.is_on);
  if (set.rate) setting.rate = set.rate->value_or(setting.rate);
  if (set.count) setting.count = set.count->value_or(setting.count);
}

}  // namespace

std::string_view model_of_path(std::string_view target) {
  for (const std::string_view before : {"/v2/models/", "/v1/deployments/"}) {
    if (!target.starts_with(before)) continue;
    const std::string_view rest = target.substr(before.size());
    return rest.substr(0, rest.find_first_of("/?"));
  }
  return "";
}

TraceSettings::TraceSettings(int percent)
    : percent_(percent), start_{percent > 0, percent > 0 ? std::max(1, kPercents / percent) : 1, -1} {}

services::TraceSetting TraceSettings::setting_of(const Own* own) const {
  services::TraceSetting setting = start_;
  overlay(setting, server_.set);
  if (own != nullptr) overlay(setting, own->set);
  return setting;
}

services::TraceSetting TraceSettings::get(const std::string& model) {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model);
  return setting_of(found == models_.end() ? nullptr : &found->second);
}

services::TraceSetting TraceSettings::change(const std::string& model, const services::TraceChange& change) {
  const std::lock_guard lock(mutex_);
  if (model.empty()) {
    apply(server_.set, change);
    return setting_of(nullptr);
  }
  if (models_.size() >= kMostModels && !models_.contains(model)) {
    throw Error(ErrorCode::kTooLarge,
                std::to_string(kMostModels) + " models have trace settings of their own already");
  }
  Own& own = models_[model];
  apply(own.set, change);
  const services::TraceSetting setting = setting_of(&own);
  const bool is_own = own.set.is_on || own.set.rate || own.set.count;
  if (!is_own) models_.erase(model);
  return setting;
}

bool TraceSettings::takes(std::string_view target) {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model_of_path(target));
  Own& own = found == models_.end() ? server_ : found->second;
  const services::TraceSetting setting = setting_of(&own);
  if (!setting.is_on || setting.count == 0) return false;
  const int64_t before = own.seen++;
  // A share that nobody changed is in percent, which no whole number of requests may say.
  const bool is_start = percent_ > 0 && !server_.set.rate && !own.set.rate;
  const bool is_taken = is_start ? (before + 1) * percent_ / kPercents > before * percent_ / kPercents
                                 : before % setting.rate == 0;
  if (is_taken && setting.count > 0) (own.set.count ? own : server_).set.count = setting.count - 1;
  return is_taken;
}

}  // namespace tensormill::trace
