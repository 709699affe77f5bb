#include "api/endpoints/tensor_codec.h"

#include <cstdio>

#include "api/endpoints/npz_codec.h"
#include "api/schema/print.h"

namespace tensormill::endpoints {
namespace {

constexpr int64_t kMaxRuns = 1000;
constexpr int64_t kMaxTimeoutMs = 3'600'000;

std::optional<services::FillMode> fill_mode(const http::Request& request) {
  const auto text = request.query_value("fill_mode");
  if (!text) return std::nullopt;
  if (*text == "zeros") return services::FillMode::kZeros;
  if (*text == "ones") return services::FillMode::kOnes;
  if (*text == "random") return services::FillMode::kRandom;
  throw Error(ErrorCode::kInvalidRequest,
              "query parameter fill_mode is \"" + std::string(*text) + "\", expected zeros, ones or random");
}

std::string metric(std::string_view name, double ms) {
  char text[64];
  std::snprintf(text, sizeof text, ";dur=%.3f", ms);
  return std::string(name) + text;
}

}  // namespace

services::NamedTensors decode_tensors(const http::Request& request, const http::TensorBody& body,
                                      const services::RunOptions& options, uint64_t max_bytes) {
  if (body.size > 0) return decode_npz(body, max_bytes, request.memory.get());
  if (options.fill_mode) return {};
  throw Error(ErrorCode::kInvalidRequest,
              "the body is empty: send an NPZ of the inputs, or say how to fill them with fill_mode");
}

services::RunOptions run_options(const http::Request& request) {
  services::RunOptions options;
  options.fill_mode = fill_mode(request);
  options.seed = static_cast<uint64_t>(request.query_int("seed", 0, 0, std::numeric_limits<int64_t>::max()));
  options.repeat = static_cast<int>(request.query_int("repeat", 1, 1, kMaxRuns));
  options.number = static_cast<int>(request.query_int("number", 1, 1, kMaxRuns));
  options.profile = request.query_flag("profile");
  if (request.query_value("timeout_ms")) {
    options.timeout = std::chrono::milliseconds(request.query_int("timeout_ms", 0, 1, kMaxTimeoutMs));
  }
  const int64_t runs = int64_t{options.repeat} * options.number;
  if (runs > kMaxRuns) {
    throw Error(ErrorCode::kInvalidRequest, "repeat × number is " + std::to_string(runs) + ", at most " +
                                                std::to_string(kMaxRuns) +
                                                " here; submit a benchmark job for more");
  }
  return options;
}

std::string server_timing(const services::Timing& timing) {
  std::string text = metric("queue", timing.queue_ms);
  if (timing.decode_ms > 0) text += ", " + metric("decode", timing.decode_ms);
  return text + ", " + metric("compute", timing.compute_ms);
}

http::Response run_response(const http::Request& request, const services::RunResult& result) {
  http::Response response;
  if (request.accepts("application/json", "application/x-npz")) {
    response = http::json_response(schema::print(
        {{"outputs", schema::to_json(result.outputs)}, {"timing", schema::to_json(result.timing)}}));
  } else {
    response = http::text_response(encode_npz(result.outputs), "application/x-npz");
  }
  response.headers.set("Server-Timing", server_timing(result.timing));
  response.headers.set("Vary", "Accept");
  if (!result.version.empty()) response.headers.set("X-Deployment-Version", result.version);
  return response;
}

}  // namespace tensormill::endpoints
