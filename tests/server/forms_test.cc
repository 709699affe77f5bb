#include "server/services/forms.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "api/schema/print.h"
#include "api/schema/requests.h"

namespace tensormill::server {
namespace {

/// By its name the text of each schema.
std::map<std::string, std::string> schemas() {
#define TM_SCHEMA(name, text) {name, text},
  return {
#include "api/schema/schemas.def"
  };
#undef TM_SCHEMA
}

/// Every member of every object of a deployment's specification, none as it is without a word.
const char* const kWhole = R"({
  "package": "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
  "version": "7", "keep_versions": 3, "instances": 2, "max_batch": 1, "max_delay_us": 12, "max_queue": 99,
  "warmup": false, "isolation": "process", "labels": ["a", "b"], "output": "probabilities",
  "weights": {"7": 3, "8": 1}, "decoupled": true,
  "placement": {"mode": "labels", "labels": ["gpu=none"], "idle_s": 77},
  "sequence": {"start": "S", "end": "E", "ready": "R", "id": "I", "states": {"in": "out"}, "idle_s": 5,
               "max_sequences": 6},
  "preprocess": {"resize": 300, "crop": 299, "mean": [1, 2, 3], "std": [4, 5, 6], "scale": 0.5,
                 "layout": "NHWC", "color": "bgr", "encoded": true}})";

/// A member that a form forgets is lost when the process ends, or in another replica.
TEST(Forms, ADeploymentsSpecificationIsKeptWhole) {
  const Json whole = Json::parse(kWhole);
  const std::map<std::string, const Json*> objects = {{"DeploymentSpec", &whole},
                                                      {"Placement", &whole.at("placement")},
                                                      {"Sequence", &whole.at("sequence")},
                                                      {"Preprocess", &whole.at("preprocess")}};
  for (const auto& [name, object] : objects) {
    std::string text = schemas().at(name);
    // "name?: type" and "name: type", nested objects have wildcards alone.
    size_t members = 0;
    for (size_t at = text.find(": "); at != std::string::npos; at = text.find(": ", at + 1)) {
      size_t end = at;
      if (text[end - 1] == '?') --end;
      size_t begin = end;
      while (begin > 0 &&
             (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '_'))
        --begin;
      if (begin == end) continue;
      ++members;
      EXPECT_TRUE(object->contains(text.substr(begin, end - begin)))
          << name << " " << text.substr(begin, end - begin);
    }
    EXPECT_EQ(members, object->size()) << name;
  }
  const services::DeploymentSpec spec = schema::read_deployment_spec(kWhole);
  const services::DeploymentSpec kept = spec_from_json(Json::parse(spec_to_json(spec).dump()));
  EXPECT_EQ(schema::to_json(kept), schema::to_json(spec));
  EXPECT_EQ(kept.weights, spec.weights);
  const Json printed = schema::to_json(kept);
  for (const auto& [name, value] : whole.items()) {
    if (name == "weights") continue;  // the deployment's, not the version's
    EXPECT_EQ(printed.at(name), value) << name;
  }
}

TEST(Forms, WhatWasKeptBeforeIsRead) {
  services::DeploymentSpec spec;
  spec.package = "sha256:0";
  spec.preprocess.emplace();
  const Json kept = spec_to_json(spec);
  EXPECT_FALSE(kept.contains("decoupled"));
  EXPECT_FALSE(kept.at("preprocess").contains("encoded"));
  EXPECT_EQ(schema::to_json(spec_from_json(kept)), schema::to_json(spec));
}

}  // namespace
}  // namespace tensormill::server
