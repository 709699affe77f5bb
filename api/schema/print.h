/// The structs of the services as JSON, with the member names of the contract.
/// Thread-safety: pure functions.
#pragma once

#include <string>

#include "api/services/services.h"
#include "runtime/base/json.h"

namespace tensormill::schema {

Json to_json(const services::TensorSpec& spec);
Json to_json(const services::ModelInfo& model);
Json to_json(const services::Job& job);
Json to_json(const services::PackageInfo& package);
Json to_json(const services::Deployment& deployment);
/// As the body of a PUT, which it can be.
Json to_json(const services::DeploymentSpec& spec);
Json to_json(const services::Preprocess& preprocess);
Json to_json(const services::Traffic& traffic);
Json to_json(const services::Timing& timing);
Json to_json(const services::ServerInfo& info);
Json to_json(const services::TargetPreset& preset);
Json to_json(const services::ParsedTarget& target);
Json to_json(const services::ClassifyResult& result);
Json to_json(const services::KeyInfo& key);
Json to_json(const services::WorkerInfo& worker);
Json to_json(const services::WorkerLease& lease);
Json to_json(const services::AuditEntry& entry);
/// {"name": {"dtype","shape","data"}}; NaN and infinities are the strings "NaN", "Infinity", "-Infinity".
Json to_json(const services::NamedTensors& tensors);

/// {"items": […], "next_cursor": … or null}
template <typename T>
Json page_json(const services::Page<T>& page) {
  Json items = Json::array();
  for (const T& item : page.items) items.push_back(to_json(item));
  return {{"items", std::move(items)},
          {"next_cursor", page.next_cursor.empty() ? Json() : Json(page.next_cursor)}};
}

/// One line of text; bytes that are not UTF-8 are replaced.
std::string print(const Json& value);
/// As print(page_json(page)), but for the order of members: metadata, which is most of a package, is put in
/// as the JSON text that it is.
std::string print(const services::Page<services::PackageInfo>& page);

}  // namespace tensormill::schema
