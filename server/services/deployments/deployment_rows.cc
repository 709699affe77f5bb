#include "server/services/deployments/deployment_rows.h"

#include <charconv>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/forms.h"

namespace tensormill::server {

namespace {

Json version_to_json(const DesiredVersion& version) {
  Json json = {{"spec", spec_to_json(version.spec)},
               {"crashed_loads", version.crashed_loads},
               {"load_begun", version.load_begun},
               {"build", version.build},
               {"failure", version.failure}};
  if (version.unloaded) json["unloaded"] = true;
  return json;
}

DesiredVersion version_from_json(const Json& json) {
  // Rows of earlier versions know loads that did not come to an end, whatever ended them: no crash is known.
  return {spec_from_json(json.at("spec")),       json.value("crashed_loads", 0),
          json.value("load_begun", false),       json.value("build", ""),
          json.at("failure").get<std::string>(), json.value("unloaded", false)};
}

/// Of another program than this one. Whether that had given it up for them.
bool forget_crashes(DesiredVersion& version, const std::string& build) {
  if (version.build == build) return false;
  const bool given_up = !version.failure.empty() && version.crashed_loads >= kMaxCrashedLoads;
  if (given_up) version.failure.clear();
  version.crashed_loads = 0;
  return given_up;
}

}  // namespace

int version_number(const std::string& version) {
  int number = 0;
  const auto [end, code] = std::from_chars(version.data(), version.data() + version.size(), number);
  TM_CHECK(code == std::errc() && end == version.data() + version.size() && number > 0,
           "a version that is no number: " + version);
  return number;
}

std::string desired_to_text(const DesiredDeployment& desired) {
  Json versions = Json::array();
  for (const DesiredVersion& version : desired.versions) versions.push_back(version_to_json(version));
  Json json = {{"created_ms", desired.created_at.ms},
               {"default_version", desired.default_version},
               {"versions", std::move(versions)}};
  if (desired.loading) json["loading"] = version_to_json(*desired.loading);
  if (!desired.loader.empty()) json["loader"] = desired.loader;
  if (!desired.weights.empty()) json["weights"] = weights_to_json(desired.weights);
  if (desired.previous) json["previous"] = spec_to_json(*desired.previous);
  for (const storage::RepeatKey& one : desired.asked)
    json["asked"].push_back({{"caller", one.caller}, {"key", one.key}, {"request", one.request}});
  return canonical_json(json);
}

DesiredDeployment desired_from_text(const std::string& text) {
  const Json json = parse_json(text);
  DesiredDeployment desired;
  try {
    desired.created_at = {json.at("created_ms").get<int64_t>()};
    json.at("default_version").get_to(desired.default_version);
    for (const Json& version : json.at("versions")) desired.versions.push_back(version_from_json(version));
    if (json.contains("loading")) desired.loading = version_from_json(json.at("loading"));
    desired.loader = json.value("loader", "");
    if (json.contains("weights")) desired.weights = weights_from_json(json.at("weights"));
    if (json.contains("previous")) desired.previous = spec_from_json(json.at("previous"));
    for (const Json& one : json.value("asked", Json::array()))
      desired.asked.push_back({one.at("caller").get<std::string>(), one.at("key").get<std::string>(),
                               one.at("request").get<std::string>()});
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kInvalidJson, std::string("not a deployment's row: ") + error.what());
  }
  return desired;
}

DesiredDeployment desired_for(const std::string& build, const std::string& text) {
  DesiredDeployment desired = desired_from_text(text);
  std::vector<DesiredVersion>& versions = desired.versions;
  if (desired.loading) forget_crashes(*desired.loading, build);
  auto again = versions.end();
  for (auto one = versions.begin(); one != versions.end(); ++one) {
    if (forget_crashes(*one, build)) again = one;
  }
  // Where nothing has served yet, it is to be the default, as its PUT asked for.
  if (again != versions.end() && desired.default_version == 0 && !desired.loading) {
    desired.loading = std::move(*again);
    versions.erase(again);
  }
  return desired;
}

}  // namespace tensormill::server
