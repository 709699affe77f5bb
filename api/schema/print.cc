#include "api/schema/print.h"

#include <cmath>

#include "api/http/time.h"
#include "runtime/base/text.h"

namespace tensormill::schema {
namespace {

Json opaque(const std::string& text) { return text.empty() ? Json() : parse_json(text); }

std::string text_of(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json time_json(const services::Timestamp& time) { return http::format_timestamp(time.ms); }

Json time_json(const std::optional<services::Timestamp>& time) { return time ? time_json(*time) : Json(); }

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json specs_json(const std::vector<services::TensorSpec>& specs) {
  Json list = Json::array();
  for (const services::TensorSpec& spec : specs) list.push_back(to_json(spec));
  return list;
}

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

Json tensor_json(const Tensor& tensor) {
  Json data = Json::array();
  if (tensor.dtype() == kString) {
    const Texts texts({tensor.dtype(), tensor.shape(), tensor.data()});
    for (int64_t i = 0; i < texts.count(); ++i) data.push_back(texts[i]);
    return {{"dtype", "string"}, {"shape", texts.shape()}, {"data", std::move(data)}};
  }
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (is_float(tensor.dtype())) {
      data.push_back(number_json(tensor.element_as_double(i)));
    } else if (tensor.dtype() == DType::kBool) {
      data.push_back(tensor.element_as_int(i) != 0);
    } else if (tensor.dtype() == DType::kUInt64) {
      data.push_back(static_cast<uint64_t>(tensor.element_as_int(i)));
    } else {
      data.push_back(tensor.element_as_int(i));
    }
  }
  return {{"dtype", dtype_long_name(tensor.dtype())}, {"shape", tensor.shape()}, {"data", std::move(data)}};
}

Json error_json(const services::JobError& error) {
  Json json = opaque(error.extra_json);
  if (!json.is_object()) json = Json::object();
  json["code"] = error_code_info(error.code).name;
  json["verdict"] = services::job_verdict(error);
  json["detail"] = error.message;
  for (const ErrorDetail& detail : error.details) {
    json["errors"].push_back({{"pointer", detail.pointer}, {"detail", detail.detail}});
  }
  return json;
}

}  // namespace

Json to_json(const services::TensorSpec& spec) {
  Json shape = Json::array();
  for (const Dim& dim : spec.shape) {
    if (const auto* extent = std::get_if<int64_t>(&dim)) {
      shape.push_back(*extent);
    } else {
      const auto& name = std::get<std::string>(dim);
      shape.push_back(name.empty() ? Json(-1) : Json(name));
    }
  }
  Json json = {{"name", spec.name}, {"dtype", dtype_long_name(spec.dtype)}, {"shape", std::move(shape)}};
  if (!spec.kind.empty()) json["kind"] = spec.kind;
  if (spec.quantization) json["quantization"] = quantization_to_json(*spec.quantization);
  return json;
}

Json to_json(const services::ModelInfo& model) {
  Json ops = Json::object();
  for (const auto& [name, count] : model.ops) ops[name] = count;
  return {{"id", model.id.text()},
          {"name", model.name},
          {"names", model.names},
          {"format", model.format},
          {"size", model.size},
          {"inputs", specs_json(model.inputs)},
          {"outputs", specs_json(model.outputs)},
          {"ops", std::move(ops)},
          {"parameters", model.parameters},
          {"created_at", time_json(model.created_at)}};
}

Json to_json(const services::Job& job) {
  return {{"id", job.id},
          {"kind", job.kind},
          {"state", services::job_state_name(job.state)},
          {"attempt", job.attempt},
          {"resolved", opaque(job.resolved_json)},
          {"progress",
           {{"stage", job.progress.stage},
            {"done", job.progress.done},
            {"total", job.progress.total},
            {"best_ms", optional_json(job.progress.best_ms)},
            {"eta_s", optional_json(job.progress.eta_s)}}},
          {"result", opaque(job.result_json)},
          {"error", job.error ? error_json(*job.error) : Json()},
          {"created_at", time_json(job.created_at)},
          {"started_at", time_json(job.started_at)},
          {"finished_at", time_json(job.finished_at)}};
}

namespace {

Json without_metadata(const services::PackageInfo& package) {
  return {{"id", package.id.text()},
          {"archive", {{"digest", package.archive_digest.text()}, {"size", package.archive_size}}},
          {"inputs", specs_json(package.inputs)},
          {"outputs", specs_json(package.outputs)},
          {"deployments", package.deployments},
          {"created_at", time_json(package.created_at)}};
}

}  // namespace

Json to_json(const services::PackageInfo& package) {
  Json json = without_metadata(package);
  json["metadata"] = opaque(package.metadata_json);
  return json;
}

std::string print(const services::Page<services::PackageInfo>& page) {
  std::string text = R"({"items":[)";
  for (const services::PackageInfo& package : page.items) {
    if (text.back() == '}') text += ',';
    text += text_of(without_metadata(package));
    text.back() = ',';  // the object goes on
    text += R"("metadata":)" + (package.metadata_json.empty() ? "null" : package.metadata_json) + "}";
  }
  const Json cursor = page.next_cursor.empty() ? Json() : Json(page.next_cursor);
  return text + R"(],"next_cursor":)" + text_of(cursor) + "}\n";
}

Json to_json(const services::Deployment& deployment) {
  Json versions = Json::object();
  for (const services::DeploymentVersion& version : deployment.versions) {
    versions[version.version] = {{"package", version.package},
                                 {"state", services::deployment_state_name(version.state)},
                                 {"reason", version.reason}};
  }
  Json json = {
      {"name", deployment.name},
      {"versions", std::move(versions)},
      {"default_version", deployment.default_version.empty() ? Json() : Json(deployment.default_version)},
      {"inputs", specs_json(deployment.inputs)},
      {"outputs", specs_json(deployment.outputs)},
      {"created_at", time_json(deployment.created_at)}};
  for (const services::ReplicaState& replica : deployment.replicas) {
    json["replicas"][replica.replica] = {{"state", services::deployment_state_name(replica.state)},
                                         {"reason", replica.reason}};
  }
  for (const auto& [version, weight] : deployment.weights) json["weights"][std::to_string(version)] = weight;
  if (!deployment.previous_version.empty()) {
    json["previous"] = {{"version", deployment.previous_version}, {"package", deployment.previous_package}};
  }
  return json;
}

namespace {

Json sequence_json(const services::SequenceSpec& spec) {
  Json json = {{"idle_s", spec.idle_s}, {"max_sequences", spec.max_sequences}, {"states", spec.states}};
  const auto add = [&](const char* name, const std::string& input) {
    if (!input.empty()) json[name] = input;
  };
  add("start", spec.start);
  add("end", spec.end);
  add("ready", spec.ready);
  add("id", spec.id);
  return json;
}

}  // namespace

Json to_json(const services::DeploymentSpec& spec) {
  Json json = {
      {"package", spec.package},     {"version", spec.version},     {"keep_versions", spec.keep_versions},
      {"instances", spec.instances}, {"max_batch", spec.max_batch}, {"max_delay_us", spec.max_delay_us},
      {"max_queue", spec.max_queue}, {"warmup", spec.warmup},       {"isolation", spec.isolation},
      {"output", spec.output}};
  json["labels"] = spec.labels_blob ? Json(*spec.labels_blob) : Json(spec.labels);
  if (spec.placement != services::Placement()) {
    json["placement"] = {{"mode", spec.placement.mode}, {"idle_s", spec.placement.idle_s}};
    if (!spec.placement.labels.empty()) json["placement"]["labels"] = spec.placement.labels;
  }
  if (spec.sequence) json["sequence"] = sequence_json(*spec.sequence);
  if (spec.decoupled) json["decoupled"] = true;
  if (spec.preprocess) json["preprocess"] = to_json(*spec.preprocess);
  return json;
}

Json to_json(const services::Preprocess& preprocess) {
  Json json = {{"mean", preprocess.mean},
               {"std", preprocess.std},
               {"layout", preprocess.layout},
               {"color", preprocess.color}};
  if (preprocess.resize) json["resize"] = *preprocess.resize;
  if (preprocess.crop) json["crop"] = *preprocess.crop;
  if (preprocess.scale) json["scale"] = *preprocess.scale;
  if (preprocess.encoded) json["encoded"] = true;
  return json;
}

namespace {

Json span_json(const services::TrafficSpan& span) {
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  return {{"since", time_json(span.since)}, {"requests", span.requests},     {"failed", span.failed},
          {"p50_ms", number(span.p50_ms)},  {"p95_ms", number(span.p95_ms)}, {"p99_ms", number(span.p99_ms)}};
}

}  // namespace

Json to_json(const services::Traffic& traffic) {
  Json json = span_json(traffic.hour);
  json["minutes"] = Json::array();
  for (const services::TrafficSpan& minute : traffic.minutes) json["minutes"].push_back(span_json(minute));
  return json;
}

Json to_json(const services::Timing& timing) {
  Json json = {{"queue_ms", timing.queue_ms}, {"compute_ms", timing.compute_ms}};
  if (timing.decode_ms > 0) json["decode_ms"] = timing.decode_ms;
  if (!timing.runs_ms.empty()) json["runs_ms"] = timing.runs_ms;
  if (!timing.profile_json.empty()) json["profile"] = opaque(timing.profile_json);
  return json;
}

Json to_json(const services::ServerInfo& info) {
  Json json = {
      {"version", info.version},
      {"compiler", {{"id", info.compiler_id}, {"llvm", info.llvm_version}, {"abi", info.abi_version}}},
      {"host", {{"cpu", info.host_cpu}, {"features", info.host_features}, {"cores", info.host_cores}}},
      {"native_target", info.native_target},
      {"model_formats", info.model_formats},
      {"limits", info.limits},
      {"confinement",
       {{"required", info.confinement.required},
        {"seccomp", info.confinement.seccomp},
        {"landlock_abi", info.confinement.landlock_abi},
        {"user", info.confinement.user},
        {"memory", info.confinement.memory}}}};
  if (info.grpc_port > 0) json["grpc_port"] = info.grpc_port;
  return json;
}

Json to_json(const services::TargetPreset& preset) {
  return {{"name", preset.name}, {"target", preset.target}, {"description", preset.description}};
}

Json to_json(const services::ParsedTarget& target) {
  return {{"canonical", target.canonical},
          {"features", target.features},
          {"digest", target.digest.text()},
          {"warnings", target.warnings},
          {"facts", opaque(target.facts_json)}};
}

Json to_json(const services::KeyInfo& key) {
  return {{"name", key.name},
          {"scopes", key.scopes},
          {"source", key.is_of_file ? "file" : "catalog"},
          {"created_at", key.created_at},
          {"expires_at", time_json(key.expires_at)}};
}

Json to_json(const services::WorkerInfo& worker) {
  return {{"name", worker.name},
          {"key", worker.key},
          {"state", worker.state},
          {"connected", worker.is_connected},
          {"facts", opaque(worker.facts_json)},
          {"status", opaque(worker.status_json)},
          {"jobs", worker.jobs},
          {"created_at", time_json(worker.created_at)},
          {"seen_at", time_json(worker.seen_at)}};
}

Json to_json(const services::WorkerLease& lease) {
  return {{"id", lease.id},
          {"verb", lease.verb},
          {"resolved", opaque(lease.resolved_json)},
          {"inputs", opaque(lease.inputs_json)},
          {"tuned", opaque(lease.tuned_json)},
          {"lease_ms", lease.lease_ms}};
}

Json to_json(const services::AuditEntry& entry) {
  return {{"ts", time_json(entry.ts)}, {"request_id", entry.request_id}, {"caller", entry.caller},
          {"peer", entry.peer},        {"client", entry.client},         {"method", entry.method},
          {"target", entry.target},    {"status", entry.status}};
}

Json to_json(const services::ClassifyResult& result) {
  Json top = Json::array();
  for (const services::Classification& one : result.top) {
    top.push_back(
        {{"label", one.label}, {"index", one.index}, {"probability", number_json(one.probability)}});
  }
  return {{"top", std::move(top)}, {"timing", to_json(result.timing)}};
}

Json to_json(const services::NamedTensors& tensors) {
  Json json = Json::object();
  for (const auto& [name, tensor] : tensors) json[name] = tensor_json(tensor);
  return json;
}

std::string print(const Json& value) { return text_of(value) + "\n"; }

}  // namespace tensormill::schema
