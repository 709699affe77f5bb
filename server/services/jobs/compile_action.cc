#include "server/services/jobs/compile_action.h"

#include <algorithm>

#include "runtime/base/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::server {

namespace {

target::Target target_of(const Json& resolved) {
  return target::parse_target(resolved.at("target").get<std::string>(), {});
}

/// [] where no kernel has a record: the same work as without any.
Json chosen_json(const Tuned& tuned) {
  if (tuned.schedules.empty()) return Json::array();
  Json kernels = Json::object();
  for (const auto& [kernel, one] : tuned.schedules)
    kernels[kernel] = one.reason.empty() ? Json{{"record", one.record}} : Json{{"reason", one.reason}};
  Json chosen = {{"kernels", std::move(kernels)}};
  if (!tuned.algorithms.empty()) chosen["algorithms"] = tuned.algorithms;
  return chosen;
}

std::string kernels_key(Json resolved) {
  resolved.erase("tuning_records");
  return "kernels " + action_key(resolved);
}

}  // namespace

std::string action_key(const Json& resolved) { return Digest::of(canonical_json(resolved)).text(); }

void resolve_records(TuningRecords& records, storage::Catalog& catalog,
                     const std::optional<std::string>& from, Json& resolved) {
  resolved["tuning_records"] = Json::array();
  if (!from) return;
  const std::optional<std::string> known = catalog.find_fact(kernels_key(resolved));
  const auto kernels =
      known ? parse_json(*known).get<std::vector<std::string>>() : std::vector<std::string>();
  // A model without kernels has nothing to choose for, and no list is no filter.
  if (known && kernels.empty()) return;
  const Json chosen = chosen_json(records.choose(*from, target_of(resolved), kernels));
  if (known || chosen.empty()) {
    resolved["tuning_records"] = chosen;
  } else {
    const std::string state = Digest::of(canonical_json(chosen)).text();
    resolved["tuning_records"] = {{"pending", {{"from", *from}, {"state", state}}}};
  }
}

bool has_pending_records(const Json& resolved) { return resolved.at("tuning_records").contains("pending"); }

void settle_records(TuningRecords& records, Json& resolved, const std::vector<std::string>& kernels,
                    const TuningPlace* place) {
  const auto from = resolved.at("tuning_records").at("pending").at("from").get<std::string>();
  resolved["tuning_records"] = kernels.empty()
                                   ? Json::array()
                                   : chosen_json(records.choose(from, target_of(resolved), kernels, place));
}

Tuned tuned_of(TuningRecords& records, Json& resolved) {
  Tuned all;
  Json& chosen = resolved.at("tuning_records");
  if (!chosen.contains("kernels")) return all;
  if (chosen.contains("algorithms")) chosen.at("algorithms").get_to(all.algorithms);
  const target::Target target = target_of(resolved);
  for (const auto& [kernel, what] : chosen.at("kernels").items()) {
    driver::TunedSchedule& tuned = all.schedules[kernel];
    if (what.contains("reason")) {
      what.at("reason").get_to(tuned.reason);
      continue;
    }
    tuned = records.find(kernel, what.at("record").get<std::string>(), target);
    if (!tuned.reason.empty()) what = {{"reason", tuned.reason}};
  }
  return all;
}

void remember_kernels(storage::Catalog& catalog, const Json& resolved, std::vector<std::string> kernels) {
  std::sort(kernels.begin(), kernels.end());
  catalog.put_fact(kernels_key(resolved), Json(kernels).dump());
}

}  // namespace tensormill::server
