// KServe v2: /v2, /v2/health/…, /v2/models/{model}[/versions/{version}][/ready|/infer]; a deployment is a
// model
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <memory>
#include <utility>

#include "api/endpoints/context.h"
#include "api/endpoints/tensor_codec.h"
#include "api/endpoints/v2_reader.h"
#include "api/schema/print.h"
#include "runtime/base/text.h"

namespace tensormill::endpoints {
namespace {

/// Those that are implemented, by the names that clients look for.
constexpr std::string_view kSharedMemory = "system_shared_memory";
constexpr std::string_view kCudaSharedMemory = "cuda_shared_memory";
constexpr std::array<std::string_view, 7> kExtensions = {
    "binary_tensor_data", "classification",  "model_configuration", "model_repository",
    "parameters",         "schedule_policy", "statistics"};
constexpr std::string_view kTrace = "trace";
constexpr std::string_view kHeaderLength = "Inference-Header-Content-Length";

std::optional<size_t> header_length(const http::Request& request) {
  const auto text = request.headers.get(kHeaderLength);
  if (!text) return std::nullopt;
  size_t value = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (code != std::errc() || end != text->data() + text->size()) {
    throw Error(ErrorCode::kInvalidRequest, std::string(kHeaderLength) + " is no number");
  }
  return value;
}

/// The JSON of a body, in pieces: nothing is read ahead of what was understood.
class BodyJson : public JsonText {
public:
  /// `size`: of the JSON in front of tensors; without one all is JSON.
  BodyJson(http::Request& request, std::optional<size_t> size)
      : body_(*request.body), memory_(*request.memory), cancelled_(request.cancelled), size_(size) {
    const std::optional<uint64_t> announced = body_.length();
    if (size && announced && *announced < *size) too_short(*announced);
    room_ = static_cast<size_t>(std::min<uint64_t>(kPiece, size.value_or(announced.value_or(kPiece))));
    if (room_ > 0) piece_ = std::make_unique_for_overwrite<std::byte[]>(room_);
  }

  std::string_view next() override {
    // The client has gone, or the server ends.
    if (cancelled_.stop_requested()) throw Error(ErrorCode::kCancelled, "the client has gone");
    const size_t wanted = static_cast<size_t>(size_ ? std::min<uint64_t>(room_, *size_ - before_)
                                                    : static_cast<uint64_t>(room_));
    const size_t count = wanted == 0 ? 0 : body_.read(std::span(piece_.get(), wanted));
    before_ += count;
    memory_.take(kGathered * count);
    if (count == 0 && size_ && before_ < *size_) too_short(before_);
    return {reinterpret_cast<const char*>(piece_.get()), count};
  }

private:
  static constexpr size_t kPiece = size_t{64} << 10;
  /// An element takes two bytes of text or more and eight in memory or fewer, and what it is gathered in may
  /// be twice that.
  static constexpr uint64_t kGathered = 8;

  [[noreturn]] void too_short(uint64_t there) const {
    throw Error(ErrorCode::kInvalidRequest, std::string(kHeaderLength) + " is " + std::to_string(*size_) +
                                                ", the body has " + std::to_string(there) + " bytes");
  }

  http::BodySource& body_;
  MemoryShare& memory_;
  std::stop_token cancelled_;
  std::optional<size_t> size_;
  size_t room_ = 0;
  uint64_t before_ = 0;
  std::unique_ptr<std::byte[]> piece_;
};

/// The tensors behind the JSON, where the model's run takes them from when it has such a place.
http::TensorBody read_raw_part(const Context& context, http::Request& request, const std::string& version,
                               size_t json_size) {
  if (const std::optional<uint64_t> length = request.body->length()) {
    const auto size = static_cast<size_t>(*length - std::min<uint64_t>(*length, json_size));
    std::shared_ptr<void> room =
        context.services.deployments->input_room(request.path_parameter("model"), version, size);
    if (room) return http::read_tensor_body(*request.body, std::move(room), size);
  }
  return http::read_tensor_body(*request.body, request.memory.get(), json_size);
}

Json tensors_json(const std::vector<services::TensorSpec>& specs) {
  Json list = Json::array();
  for (const services::TensorSpec& spec : specs) {
    Json shape = Json::array();
    for (const Dim& dim : spec.shape) {
      const int64_t* extent = std::get_if<int64_t>(&dim);
      shape.push_back(extent == nullptr ? -1 : *extent);
    }
    list.push_back(
        {{"name", spec.name}, {"datatype", dtype_v2_name(spec.dtype)}, {"shape", std::move(shape)}});
  }
  return list;
}

/// The inputs as clients see them: files of pictures, where the deployment takes those.
Json inputs_json(const services::DeploymentVersion& version) {
  Json list = tensors_json(version.inputs);
  if (version.takes_pictures && list.size() == 1) {
    list[0]["datatype"] = dtype_v2_name(kString);
    list[0]["shape"] = {version.max_batch > 1 ? -1 : 1, 1};
  }
  return list;
}

/// What the model takes: of the version that is asked for, or the default one.
std::vector<services::TensorSpec> inputs_of(const Context& context, const std::string& name,
                                            const std::string& version) {
  const services::Deployment model = get_v2_deployment(context, name);
  const services::DeploymentVersion* shown = find_v2_version(model, version);
  return shown == nullptr ? model.inputs : shown->inputs;
}

/// Elements that all inputs may have as JSON: those that the model has. Free dims could be anything; a bound
/// keeps the time to read them below a second or two, and binary tensors have none.
uint64_t most_elements(const std::vector<services::TensorSpec>& specs) {
  constexpr uint64_t kOfFreeDims = uint64_t{1} << 25;
  uint64_t all = 0;
  bool any_free = false;
  for (const services::TensorSpec& spec : specs) {
    const bool is_free = std::any_of(spec.shape.begin(), spec.shape.end(),
                                     [](const Dim& dim) { return std::holds_alternative<std::string>(dim); });
    any_free = any_free || is_free;
    if (!is_free) all += static_cast<uint64_t>(num_elements(concrete_shape(spec.shape)));
  }
  return any_free ? std::max(all, kOfFreeDims) : all;
}

/// Whether the first dim of the answer counts rows that are classified each.
bool classifies_rows(const Context& context, const V2Request& asked, const std::string& name,
                     const services::RunResult& result) {
  const bool classifies = std::any_of(asked.outputs.begin(), asked.outputs.end(),
                                      [](const V2Output& output) { return output.classes > 0; });
  if (!classifies) return false;
  const services::Deployment model = get_v2_deployment(context, name);
  const services::DeploymentVersion* version = find_v2_version(model, result.version);
  return version != nullptr && version->max_batch > 1;
}

/// In the words that clients look for.
void require_number(const std::string& version) {
  if (version.find_first_not_of("0123456789") == std::string::npos) return;
  throw Error(ErrorCode::kInvalidArgument,
              "failed to get model version from specified version string '" + version + "'");
}

http::Response state_response(bool good) {
  http::Response response = http::text_response("");
  response.status = good ? 200 : 400;
  return response;
}

}  // namespace

http::Response get_v2_server(const Context& context, http::Request&) {
  Json extensions(kExtensions);
  if (context.options.shared_memory) extensions.push_back(kSharedMemory);
  if (context.options.cuda_shared_memory) extensions.push_back(kCudaSharedMemory);
  if (context.options.traces != nullptr) extensions.push_back(kTrace);
  return http::json_response(schema::print({{"name", context.options.v2_name},
                                            {"version", context.services.info->info().version},
                                            {"extensions", std::move(extensions)}}));
}

http::Response get_v2_live(const Context& context, http::Request&) {
  return state_response(context.services.health->live());
}

http::Response get_v2_ready(const Context& context, http::Request&) {
  return state_response(context.services.health->ready().ready);
}

http::Response get_v2_model(const Context& context, http::Request& request) {
  const std::string& name = request.path_parameter("model");
  const services::Deployment model = get_v2_deployment(context, name);
  const std::string version = v2_version_of(request);
  const services::DeploymentVersion* shown = find_v2_version(model, version);
  if (!version.empty() && shown == nullptr) {
    throw Error(ErrorCode::kNotFound, "model \"" + name + "\" has no version \"" + version + "\"");
  }
  Json versions = Json::array();
  for (const services::DeploymentVersion& one : model.versions) versions.push_back(one.version);
  return http::json_response(
      schema::print({{"name", name},
                     {"versions", std::move(versions)},
                     {"platform", "tensormill"},
                     {"inputs", shown == nullptr ? Json::array() : inputs_json(*shown)},
                     {"outputs", shown == nullptr ? Json::array() : tensors_json(shown->outputs)}}));
}

http::Response get_v2_model_ready(const Context& context, http::Request& request) {
  const services::Deployment model = get_v2_deployment(context, request.path_parameter("model"));
  const services::DeploymentVersion* version = find_v2_version(model, v2_version_of(request));
  return state_response(version != nullptr && version->state == services::DeploymentState::kReady);
}

http::Response infer_v2(const Context& context, http::Request& request) {
  const std::string& name = request.path_parameter("model");
  const std::optional<size_t> json_size = header_length(request);
  const std::string version = v2_version_of(request);
  require_number(version);
  if (!context.services.deployments->has(name)) get_v2_deployment(context, name);
  // JSON is decoded as it comes, at the client's pace: no place in the queue is kept meanwhile.
  context.services.deployments->admit(name, version);
  const auto rest = [&] {
    return json_size ? read_raw_part(context, request, version, *json_size) : http::TensorBody();
  };
  const bool shares = context.options.shares_memory() && request.peer_is_loopback;
  const SharedRegions* regions = shares ? &context.regions : nullptr;
  V2Request asked;
  const auto takes_pictures = [&] { return context.services.deployments->takes_pictures(name, version); };
  if (json_size == size_t{0}) {
    asked = read_v2_raw_request(rest(), inputs_of(context, name, version), takes_pictures());
  } else {
    BodyJson json(request, json_size);
    const auto elements = [&] { return most_elements(inputs_of(context, name, version)); };
    const V2Limits limits{context.options.max_tensor_bytes, elements, regions, request.memory.get(),
                          takes_pictures};
    asked = read_v2_request(json, limits, rest);
  }
  services::RunOptions options;
  options.timeout = asked.timeout;
  options.priority = asked.priority;
  options.sequence = asked.sequence;
  auto inputs = std::move(asked.inputs);
  auto pictures = std::exchange(asked.pictures, std::nullopt);
  return later<services::RunResult>(
      [&context, &request, &name, version, options, inputs = std::move(inputs),
       pictures = std::move(pictures)](const auto& done) mutable {
        services::DeploymentService& deployments = *context.services.deployments;
        const services::CallContext call = call_context(request);
        pictures
            ? deployments.infer_pictures(name, version, *std::exchange(pictures, {}), options, call, done)
            : deployments.infer(name, version, std::move(inputs), options, call, done);
      },
      [&context, &name, regions, asked = std::move(asked)](const services::RunResult& result) {
        V2Response printed =
            print_v2_response(asked, name, classifies_rows(context, asked, name, result), result, regions);
        http::Response response = http::text_response(
            std::move(printed.body), printed.binary ? "application/octet-stream" : "application/json");
        if (printed.binary) response.headers.set(kHeaderLength, std::to_string(printed.json_size));
        response.headers.set("Server-Timing", server_timing(result.timing));
        return response;
      });
}

http::Response get_v2_version(const Context& context, http::Request& request) {
  return get_v2_model(context, request);
}

http::Response get_v2_version_ready(const Context& context, http::Request& request) {
  return get_v2_model_ready(context, request);
}

http::Response infer_v2_version(const Context& context, http::Request& request) {
  return infer_v2(context, request);
}

}  // namespace tensormill::endpoints
