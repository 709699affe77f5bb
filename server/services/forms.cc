#include "server/services/forms.h"

#include <charconv>

#include "api/schema/print.h"
#include "runtime/base/error.h"

namespace tensormill::server {

bool has_kinds(const Json& facts) { return facts.value("version", int64_t{1}) >= kFactsVersion; }

Json specs_to_json(const std::vector<services::TensorSpec>& specs) {
  Json json = Json::array();
  for (const services::TensorSpec& spec : specs) {
    json.push_back(
        {{"name", spec.name}, {"dtype", dtype_name(spec.dtype)}, {"shape", dims_to_json(spec.shape)}});
    if (!spec.kind.empty()) json.back()["kind"] = spec.kind;
    if (spec.quantization) json.back()["quantization"] = quantization_to_json(*spec.quantization);
  }
  return json;
}

std::vector<services::TensorSpec> specs_from_json(const Json& json) {
  std::vector<services::TensorSpec> specs;
  for (const Json& one : json) {
    const auto dtype = dtype_from_name(one.at("dtype").get<std::string>());
    if (!dtype) throw Error(ErrorCode::kInvalidJson, "unknown dtype " + one.at("dtype").dump());
    specs.push_back({one.at("name").get<std::string>(), *dtype, dims_from_json(one.at("shape")),
                     one.value("kind", std::string())});
    if (one.contains("quantization"))
      specs.back().quantization = quantization_from_json(one.at("quantization"));
  }
  return specs;
}

std::vector<services::TensorSpec> specs_of(const std::vector<package::TensorInfo>& infos) {
  std::vector<services::TensorSpec> specs;
  for (const package::TensorInfo& info : infos)
    specs.push_back({info.name, info.dtype, info.shape, {}, info.quantization});
  return specs;
}

Json weights_to_json(const services::VersionWeights& weights) {
  Json json = Json::object();
  for (const auto& [number, weight] : weights) json[std::to_string(number)] = weight;
  return json;
}

services::VersionWeights weights_from_json(const Json& json) {
  services::VersionWeights weights;
  for (const auto& [version, weight] : json.items()) weights[std::stoi(version)] = weight.get<int>();
  return weights;
}

Json spec_to_json(const services::DeploymentSpec& spec) {
  Json json = {
      {"package", spec.package},     {"version", spec.version},     {"keep_versions", spec.keep_versions},
      {"instances", spec.instances}, {"max_batch", spec.max_batch}, {"max_delay_us", spec.max_delay_us},
      {"max_queue", spec.max_queue}, {"warmup", spec.warmup},       {"isolation", spec.isolation},
      {"labels", spec.labels},       {"output", spec.output}};
  if (spec.labels_blob) json["labels_blob"] = *spec.labels_blob;
  if (spec.placement != services::Placement())
    json["placement"] = {
        {"mode", spec.placement.mode}, {"labels", spec.placement.labels}, {"idle_s", spec.placement.idle_s}};
  if (spec.sequence) {
    const services::SequenceSpec& sequence = *spec.sequence;
    json["sequence"] = {{"start", sequence.start},
                        {"end", sequence.end},
                        {"ready", sequence.ready},
                        {"id", sequence.id},
                        {"states", sequence.states},
                        {"idle_s", sequence.idle_s},
                        {"max_sequences", sequence.max_sequences}};
  }
  if (spec.decoupled) json["decoupled"] = true;
  if (!spec.weights.empty()) json["weights"] = weights_to_json(spec.weights);
  if (spec.preprocess) json["preprocess"] = schema::to_json(*spec.preprocess);
  return json;
}

services::DeploymentSpec spec_from_json(const Json& json) {
  services::DeploymentSpec spec;
  json.at("package").get_to(spec.package);
  json.at("version").get_to(spec.version);
  json.at("keep_versions").get_to(spec.keep_versions);
  json.at("instances").get_to(spec.instances);
  json.at("max_batch").get_to(spec.max_batch);
  json.at("max_delay_us").get_to(spec.max_delay_us);
  json.at("max_queue").get_to(spec.max_queue);
  json.at("warmup").get_to(spec.warmup);
  json.at("isolation").get_to(spec.isolation);
  json.at("labels").get_to(spec.labels);
  json.at("output").get_to(spec.output);
  if (json.contains("placement")) {
    const Json& placement = json.at("placement");
    placement.at("mode").get_to(spec.placement.mode);
    placement.at("labels").get_to(spec.placement.labels);
    placement.at("idle_s").get_to(spec.placement.idle_s);
  }
  if (json.contains("sequence")) {
    const Json& source = json.at("sequence");
    services::SequenceSpec& sequence = spec.sequence.emplace();
    source.at("start").get_to(sequence.start);
    source.at("end").get_to(sequence.end);
    source.at("ready").get_to(sequence.ready);
    source.at("id").get_to(sequence.id);
    source.at("states").get_to(sequence.states);
    source.at("idle_s").get_to(sequence.idle_s);
    source.at("max_sequences").get_to(sequence.max_sequences);
  }
  spec.decoupled = json.value("decoupled", false);
  if (json.contains("weights")) spec.weights = weights_from_json(json.at("weights"));
  if (json.contains("labels_blob")) spec.labels_blob = json.at("labels_blob").get<std::string>();
  if (json.contains("preprocess")) {
    const Json& source = json.at("preprocess");
    services::Preprocess pre;
    source.at("mean").get_to(pre.mean);
    source.at("std").get_to(pre.std);
    source.at("layout").get_to(pre.layout);
    source.at("color").get_to(pre.color);
    if (source.contains("resize")) pre.resize = source.at("resize").get<int>();
    if (source.contains("crop")) pre.crop = source.at("crop").get<int>();
    if (source.contains("scale")) pre.scale = source.at("scale").get<double>();
    pre.encoded = source.value("encoded", false);
    spec.preprocess = std::move(pre);
  }
  return spec;
}

std::string cursor_text(int64_t next) { return next == 0 ? std::string() : std::to_string(next); }

int64_t cursor_from_text(const std::string& text) {
  if (text.empty()) return 0;
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value <= 0) {
    throw Error(ErrorCode::kInvalidRequest, "query parameter cursor is \"" + text + "\", which no list gave");
  }
  return value;
}

}  // namespace tensormill::server
