#include "server/services/workers/work_desk.h"

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/jobs/compile_action.h"
#include "server/services/store/package_service.h"

namespace tensormill::server {

Digest model_blob(storage::Catalog& catalog, const Json& resolved) {
  const auto model = catalog.find_model(Digest::parse(resolved.at("model").get<std::string>()).value());
  if (!model) throw Error(ErrorCode::kNotFound, "the model was removed");
  return model->blobs.at(0);
}

std::vector<Digest> blobs_named_by(const Json& resolved) {
  std::vector<Digest> blobs;
  const auto add = [&](const Json& digest) {
    if (!digest.is_null()) blobs.push_back(Digest::parse(digest.get<std::string>()).value());
  };
  for (const char* name : {"inputs", "labels", "expected"}) {
    if (const auto named = resolved.find(name); named != resolved.end()) add(*named);
  }
  if (const auto named = resolved.find("blobs"); named != resolved.end()) {
    for (const Json& digest : *named) add(digest);
  }
  return blobs;
}

std::shared_ptr<const storage::Blob> StoreDesk::open_model(jobs::JobContext&, const Json& resolved) {
  return blobs_.open(model_blob(catalog_, resolved));
}

Tuned StoreDesk::tuned(jobs::JobContext&, Json& resolved, const std::vector<std::string>& kernels) {
  return settled(resolved, kernels);
}

Tuned StoreDesk::settled(Json& resolved, const std::vector<std::string>& kernels) {
  if (has_pending_records(resolved)) {
    settle_records(records_, resolved, kernels);
    remember_kernels(catalog_, resolved, kernels);
  }
  return tuned_of(records_, resolved);
}

std::shared_ptr<const storage::Blob> StoreDesk::open_inputs(jobs::JobContext&, const Json& resolved) {
  return blobs_.open(Digest::parse(resolved.at("inputs").get<std::string>()).value());
}

std::shared_ptr<const storage::Blob> StoreDesk::open_blob(jobs::JobContext&, const Json& resolved,
                                                          const std::string& name) {
  return blobs_.open(Digest::parse(resolved.at("blobs").at(name).get<std::string>()).value());
}

MemberBlobs StoreDesk::open_members(jobs::JobContext&, const Json& resolved) {
  const storage::PackageRow row = require_package(catalog_, resolved.at("package").get<std::string>());
  catalog_.touch_package(row.id);
  return server::open_members(blobs_, row);
}

Json tuned_json(const Tuned& tuned) {
  Json rows = Json::object();
  for (const auto& [kernel, one] : tuned.schedules) rows[kernel] = {one.steps, one.record, one.reason};
  return {{"schedules", std::move(rows)}, {"algorithms", tuned.algorithms}};
}

Tuned tuned_from_json(const Json& json) {
  Tuned tuned;
  for (const auto& [kernel, row] : json.at("schedules").items()) {
    driver::TunedSchedule& one = tuned.schedules[kernel];
    row.at(0).get_to(one.steps);
    row.at(1).get_to(one.record);
    row.at(2).get_to(one.reason);
  }
  json.at("algorithms").get_to(tuned.algorithms);
  return tuned;
}

}  // namespace tensormill::server
