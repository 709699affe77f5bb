// KServe v2 as Triton extends it: POST /v2/repository/index; GET
// /v2/models/{model}[/versions/{version}]/config and /stats
#include "api/endpoints/context.h"
#include "api/schema/print.h"
#include "runtime/base/text.h"

namespace tensormill::endpoints {
namespace {

bool flag(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return false;
  if (!found->is_boolean()) throw Error(ErrorCode::kInvalidArgument, std::string(name) + " is no bool");
  return found->get<bool>();
}

const services::DeploymentVersion& require_version(const services::Deployment& model,
                                                   const std::string& version) {
  const services::DeploymentVersion* found = find_v2_version(model, version);
  if (found == nullptr) {
    throw Error(ErrorCode::kNotFound, "model \"" + model.name + "\" has no version \"" + version + "\"");
  }
  return *found;
}

/// "TYPE_FP32"; in a configuration strings have a name of their own.
std::string config_type(DType dtype) {
  return "TYPE_" + std::string(dtype == kString ? "STRING" : dtype_v2_name(dtype));
}

/// Dims without the batch's.
Json config_tensors(const services::DeploymentVersion& version,
                    const std::vector<services::TensorSpec>& specs, bool is_input) {
  Json list = Json::array();
  for (const services::TensorSpec& spec : specs) {
    Json dims = Json::array();
    for (size_t i = version.max_batch > 1 ? 1 : 0; i < spec.shape.size(); ++i) {
      const int64_t* extent = std::get_if<int64_t>(&spec.shape[i]);
      dims.push_back(extent == nullptr ? -1 : *extent);
    }
    Json tensor = {{"name", spec.name},
                   {"data_type", config_type(spec.dtype)},
                   {"dims", std::move(dims)},
                   {"is_shape_tensor", false}};
    if (is_input && version.takes_pictures) {
      tensor["data_type"] = config_type(kString);
      tensor["dims"] = version.max_batch > 1 ? Json::array({1}) : Json::array({1, 1});
    }
    if (is_input) {
      // Of a picture, which the first input is, it is told where its dims are those of one.
      const bool is_picture = !version.layout.empty() && &spec == specs.data() && tensor["dims"].size() == 3;
      tensor["format"] = is_picture ? "FORMAT_" + version.layout : "FORMAT_NONE";
      tensor["allow_ragged_batch"] = false;
      tensor["optional"] = false;
    } else {
      tensor["label_filename"] = "";
    }
    list.push_back(std::move(tensor));
  }
  return list;
}

Json sequences_json(const services::DeploymentVersion& version) {
  constexpr int64_t kMicroseconds = 1'000'000;
  const services::SequenceSpec& spec = *version.sequence;
  Json controls = Json::array(), states = Json::array();
  const auto add = [&](const std::string& name, const char* kind) {
    if (name.empty()) return;
    Json control = {{"kind", kind}, {"int32_false_true", Json::array({0, 1})}};
    controls.push_back({{"name", name}, {"control", Json::array({std::move(control)})}});
  };
  add(spec.start, "CONTROL_SEQUENCE_START");
  add(spec.ready, "CONTROL_SEQUENCE_READY");
  add(spec.end, "CONTROL_SEQUENCE_END");
  add(spec.id, "CONTROL_SEQUENCE_CORRID");
  for (const auto& [input, output] : spec.states)
    states.push_back({{"input_name", input}, {"output_name", output}});
  return {{"max_sequence_idle_microseconds", spec.idle_s * kMicroseconds},
          {"control_input", std::move(controls)},
          {"state", std::move(states)},
          {"oldest",
           {{"max_candidate_sequences", spec.max_sequences},
            {"preferred_batch_size", Json::array({version.max_batch})},
            {"max_queue_delay_microseconds", version.max_delay_us},
            {"preserve_ordering", false}}}};
}

Json config_json(const services::Deployment& model, const services::DeploymentVersion& version) {
  Json group = {{"name", model.name}, {"kind", "KIND_CPU"}, {"count", version.instances}};
  Json config = {{"name", model.name},
                 {"platform", "tensormill"},
                 {"backend", "tensormill"},
                 {"max_batch_size", version.max_batch > 1 ? version.max_batch : 0},
                 {"input", config_tensors(version, version.inputs, true)},
                 {"output", config_tensors(version, version.outputs, false)},
                 {"instance_group", Json::array({std::move(group)})},
                 {"version_policy", {{"specific", {{"versions", Json::array()}}}}},
                 {"model_transaction_policy", {{"decoupled", version.decoupled}}},
                 {"response_cache", {{"enable", false}}},
                 {"parameters", Json::object()}};
  for (const services::DeploymentVersion& one : model.versions) {
    config["version_policy"]["specific"]["versions"].push_back(std::stoll(one.version));
  }
  if (version.sequence) {
    config["sequence_batching"] = sequences_json(version);
  } else if (version.max_batch > 1) {
    config["dynamic_batching"] = {{"max_queue_delay_microseconds", version.max_delay_us},
                                  {"preferred_batch_size", Json::array({version.max_batch})},
                                  {"preserve_ordering", false},
                                  {"priority_levels", services::kLowestPriority},
                                  {"default_priority_level", services::kDefaultPriority}};
  }
  return config;
}

Json total_json(const services::DurationTotal& total) { return {{"count", total.count}, {"ns", total.ns}}; }

Json stats_json(const std::string& name, const services::InferStatistics& statistics) {
  Json batches = Json::array();
  for (const auto& [rows, batch] : statistics.batches) {
    batches.push_back({{"batch_size", rows},
                       {"compute_input", total_json(batch.input)},
                       {"compute_infer", total_json(batch.compute)},
                       {"compute_output", total_json(batch.output)}});
  }
  const services::DurationTotal none;
  return {{"name", name},
          {"version", statistics.version},
          {"last_inference", statistics.last_inference.ms},
          {"inference_count", statistics.inference_count},
          {"execution_count", statistics.execution_count},
          {"inference_stats",
           {{"success", total_json(statistics.success)},
            {"fail", total_json(statistics.fail)},
            {"queue", total_json(statistics.queue)},
            {"compute_input", total_json(statistics.input)},
            {"compute_infer", total_json(statistics.compute)},
            {"compute_output", total_json(statistics.output)},
            {"cache_hit", total_json(none)},
            {"cache_miss", total_json(none)}}},
          {"response_stats", Json::object()},
          {"batch_stats", std::move(batches)},
          {"memory_usage",
           Json::array({Json{{"type", "CPU"}, {"id", 0}, {"byte_size", statistics.memory_bytes}}})}};
}

void add_stats(Json& list, services::DeploymentService& deployments, const std::string& name,
               const std::string& version) {
  for (const services::InferStatistics& one : deployments.statistics(name, version)) {
    list.push_back(stats_json(name, one));
  }
}

http::Response stats_response(Json list) {
  return http::json_response(schema::print({{"model_stats", std::move(list)}}));
}

/// Calls `function` for every deployment that the request's key may see.
template <typename Function>
void for_each_deployment(services::DeploymentService& deployments, const http::Request& request,
                         const Function& function) {
  services::PageQuery page;
  page.limit = 500;
  do {
    const auto found = list_visible_deployments(deployments, page, request);
    for (const services::Deployment& model : found.items) function(model);
    page.cursor = found.next_cursor;
  } while (!page.cursor.empty());
}

/// Triton's words for the states.
std::string_view repository_state(services::DeploymentState state) {
  switch (state) {
    case services::DeploymentState::kReady:
      return "READY";
    case services::DeploymentState::kLoading:
      return "LOADING";
    case services::DeploymentState::kUnloading:
      return "UNLOADING";
    case services::DeploymentState::kUnloaded:
    case services::DeploymentState::kFailed:
      return "UNAVAILABLE";
  }
  return "UNKNOWN";
}

}  // namespace

http::Response get_v2_config(const Context& context, http::Request& request) {
  const services::Deployment model = get_v2_deployment(context, request.path_parameter("model"));
  const services::DeploymentVersion& version = require_version(model, v2_version_of(request));
  if (version.state != services::DeploymentState::kReady) {
    throw Error(ErrorCode::kUnavailable, "version " + version.version + " of model \"" + model.name +
                                             "\" is " +
                                             std::string(services::deployment_state_name(version.state)));
  }
  return http::json_response(schema::print(config_json(model, version)));
}

http::Response get_v2_version_config(const Context& context, http::Request& request) {
  return get_v2_config(context, request);
}

http::Response get_v2_stats(const Context& context, http::Request& request) {
  Json list = Json::array();
  add_stats(list, *context.services.deployments, request.path_parameter("model"), v2_version_of(request));
  return stats_response(std::move(list));
}

http::Response get_v2_version_stats(const Context& context, http::Request& request) {
  return get_v2_stats(context, request);
}

http::Response get_v2_all_stats(const Context& context, http::Request& request) {
  Json list = Json::array();
  services::DeploymentService& deployments = *context.services.deployments;
  for_each_deployment(deployments, request, [&](const services::Deployment& model) {
    try {
      add_stats(list, deployments, model.name, "");
    } catch (const Error& error) {
      // One that was removed since the list was made has none.
      if (error.code() != ErrorCode::kNotFound) throw;
    }
  });
  return stats_response(std::move(list));
}

http::Response index_v2_repository(const Context& context, http::Request& request) {
  const bool only_ready = flag(v2_control_body(request), "ready");
  Json list = Json::array();
  for_each_deployment(*context.services.deployments, request, [&](const services::Deployment& model) {
    for (const services::DeploymentVersion& version : model.versions) {
      if (only_ready && version.state != services::DeploymentState::kReady) continue;
      const bool unloaded = version.state == services::DeploymentState::kUnloaded;
      list.push_back({{"name", model.name},
                      {"version", version.version},
                      {"state", repository_state(version.state)},
                      {"reason", unloaded ? "unloaded" : version.reason}});
    }
  });
  return http::json_response(schema::print(list));
}

}  // namespace tensormill::endpoints
