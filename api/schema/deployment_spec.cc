#include <algorithm>
#include <cmath>
#include <limits>

#include "api/schema/reader.h"
#include "api/schema/requests.h"
#include "runtime/base/digest.h"
#include "runtime/base/json.h"

namespace tensormill::schema {
namespace {

constexpr int kMaxPixels = 8192;
constexpr size_t kMaxLabels = 1'000'000;
constexpr int kMaxWeight = 1000;
constexpr size_t kMaxVersions = 100;

bool is_version(std::string_view text) {
  return !text.empty() && text.size() <= 9 && text[0] >= '1' && text[0] <= '9' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void check_channels(const std::vector<double>& values, const std::string& pointer, Problems& problems) {
  if (values.size() != 0 && values.size() != 1 && values.size() != 3) {
    problems.add(pointer, "has " + std::to_string(values.size()) + " values, expected 1 or 3");
  }
}

/// What the brightest and the darkest sample become must be floats that are finite.
void check_values(const services::Preprocess& given, const std::string& pointer, Problems& problems) {
  double mean = 0, std = 1;
  for (const double value : given.mean) mean = std::max(mean, std::abs(value));
  if (!given.std.empty()) std = *std::min_element(given.std.begin(), given.std.end());
  const double largest = (255 * std::abs(given.scale.value_or(1)) + mean) / std;
  if (std > 0 && !(largest <= static_cast<double>(std::numeric_limits<float>::max())))
    problems.add(pointer, "makes values that float32 does not have of pictures");
}

services::Preprocess read_preprocess(const Json& value, const std::string& pointer, Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  services::Preprocess result;
  reader.nullable("resize", result.resize, 1, kMaxPixels);
  reader.nullable("crop", result.crop, 1, kMaxPixels);
  reader.optional("mean", result.mean);
  check_channels(result.mean, pointer + "/mean", problems);
  reader.optional("std", result.std);
  check_channels(result.std, pointer + "/std", problems);
  for (size_t i = 0; i < result.std.size(); ++i) {
    if (result.std[i] <= 0) problems.add(pointer + "/std/" + std::to_string(i), "is not above 0");
  }
  reader.nullable("scale", result.scale);
  check_values(result, pointer, problems);
  reader.choice("layout", result.layout, {"NCHW", "NHWC"});
  reader.choice("color", result.color, {"rgb", "bgr", "gray"});
  reader.optional("encoded", result.encoded);
  reader.finish();
  return result;
}

/// Labels stand in the request as an array, or it names the blob that has them.
void read_labels(ObjectReader& body, services::DeploymentSpec& spec) {
  const Json* value = body.find("labels");
  if (value == nullptr || value->is_null()) return;
  if (value->is_array()) {
    body.optional("labels", spec.labels);
    if (value->size() > kMaxLabels) body.problems().add("/labels", "has more than 1000000 labels");
    return;
  }
  body.nullable("labels", spec.labels_blob);
  if (spec.labels_blob && !Digest::parse(*spec.labels_blob)) {
    body.problems().add("/labels", "is neither an array of strings nor the id of a blob");
  }
}

services::Placement read_placement(const Json& value, const std::string& pointer, Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  services::Placement placement;
  reader.choice("mode", placement.mode, {"all", "labels", "demand"});
  reader.optional("labels", placement.labels);
  reader.optional("idle_s", placement.idle_s, 1, 31'536'000);
  const bool by_labels = placement.mode == "labels";
  if (by_labels == placement.labels.empty())
    problems.add(pointer + "/labels", by_labels ? "is missing: mode is labels" : "are of mode labels alone");
  reader.finish();
  return placement;
}

services::SequenceSpec read_sequence(const Json& value, const std::string& pointer, Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  services::SequenceSpec sequence;
  reader.optional("start", sequence.start);
  reader.optional("end", sequence.end);
  reader.optional("ready", sequence.ready);
  reader.optional("id", sequence.id);
  reader.each_member("states", [&](const std::string& input, const Json& output, const std::string& at) {
    sequence.states[input] = read_string(output, at, problems).value_or("");
  });
  reader.optional("idle_s", sequence.idle_s, 1, 86'400);
  reader.optional("max_sequences", sequence.max_sequences, 1, 1'000'000);
  reader.finish();
  return sequence;
}

services::VersionWeights read_weights(ObjectReader& body) {
  services::VersionWeights weights;
  int64_t sum = 0;
  body.each_member("weights", [&](const std::string& version, const Json& value, const std::string& pointer) {
    if (!is_version(version)) {
      body.problems().add(pointer, "is no version: a number from 1 to 999999999");
      return;
    }
    const auto weight = read_int(value, pointer, 0, kMaxWeight, body.problems());
    sum += weight.value_or(1);
    weights[std::stoi(version)] = static_cast<int>(weight.value_or(0));
  });
  if (weights.size() > kMaxVersions) body.problems().add("/weights", "has more than 100 versions");
  if (!weights.empty() && sum == 0) body.problems().add("/weights", "gives no version any request");
  return weights;
}

}  // namespace

services::VersionWeights read_version_weights(std::string_view text) {
  const Json json = parse_json(text);
  Problems problems;
  ObjectReader body(json, "", problems);
  services::VersionWeights weights = read_weights(body);
  if (weights.empty() && problems.empty()) problems.add("/weights", "is missing or names no version");
  body.finish();
  problems.throw_if_any();
  return weights;
}

services::DeploymentSpec read_deployment_spec(std::string_view text) {
  const Json json = parse_json(text);
  Problems problems;
  ObjectReader body(json, "", problems);
  services::DeploymentSpec spec;
  body.required("package", spec.package);
  if (!spec.package.empty() && !Digest::parse(spec.package))
    problems.add("/package", "is no id of a package");
  body.optional("version", spec.version);
  if (!is_version(spec.version)) problems.add("/version", "is no number from 1 to 999999999 as a string");
  body.optional("keep_versions", spec.keep_versions, 1, 100);
  body.optional("instances", spec.instances, 1, 64);
  body.optional("max_batch", spec.max_batch, 1, 65536);
  body.optional("max_delay_us", spec.max_delay_us, 0, 10'000'000);
  body.optional("max_queue", spec.max_queue, 1, 65536);
  body.optional("warmup", spec.warmup);
  body.choice("isolation", spec.isolation, {"none", "process"});
  read_labels(body, spec);
  if (const Json* value = body.find("preprocess"); value != nullptr && !value->is_null()) {
    spec.preprocess = read_preprocess(*value, "/preprocess", problems);
  }
  body.choice("output", spec.output, {"logits", "probabilities"});
  spec.weights = read_weights(body);
  if (const Json* value = body.find("placement"); value != nullptr && !value->is_null())
    spec.placement = read_placement(*value, "/placement", problems);
  if (const Json* value = body.find("sequence"); value != nullptr && !value->is_null())
    spec.sequence = read_sequence(*value, "/sequence", problems);
  body.optional("decoupled", spec.decoupled);
  if (spec.decoupled && spec.max_batch > 1)
    problems.add("/decoupled", "is not together with max_batch: rows of a batch are requests' own");
  body.finish();
  problems.throw_if_any();
  return spec;
}

}  // namespace tensormill::schema
