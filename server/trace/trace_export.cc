#include "server/trace/trace_export.h"

#include <openssl/rand.h>

#include <algorithm>
#include <iterator>

#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/json.h"
#include "server/transport/http_client.h"

namespace tensormill::trace {
namespace {

constexpr size_t kMostKept = 8192;
constexpr size_t kBatch = 512;
constexpr std::chrono::seconds kPatience{5};

Json attribute(const std::string& key, const std::variant<std::string, int64_t>& value) {
  Json json = {{"key", key}};
  // Whole numbers of 64 bits are texts in this form.
  if (const auto* number = std::get_if<int64_t>(&value))
    json["value"] = {{"intValue", std::to_string(*number)}};
  if (const auto* text = std::get_if<std::string>(&value)) json["value"] = {{"stringValue", *text}};
  return json;
}

Json span_json(const Span& span) {
  constexpr int kInternal = 1, kServer = 2, kError = 2;
  Json json = {{"traceId", span.trace_id},
               {"spanId", span.span_id},
               {"name", span.name},
               {"kind", span.is_server ? kServer : kInternal},
               {"startTimeUnixNano", std::to_string(span.start_ns)},
               {"endTimeUnixNano", std::to_string(span.end_ns)},
               {"attributes", Json::array()},
               {"status", Json::object()}};
  if (!span.parent_id.empty()) json["parentSpanId"] = span.parent_id;
  if (span.failed) json["status"]["code"] = kError;
  for (const auto& [key, value] : span.attributes) json["attributes"].push_back(attribute(key, value));
  return json;
}

}  // namespace

std::string checked_endpoint(std::string endpoint) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const std::string scheme = transport::address_of(endpoint).scheme;
  if (scheme != "http" && scheme != "https")
    throw Error(ErrorCode::kUsage,
                "otel.endpoint " + endpoint + ": expected http://HOST:PORT or https://HOST");
  return endpoint;
}

std::string random_hex(size_t bytes) {
  std::vector<uint8_t> raw(bytes);
  TM_CHECK(::RAND_bytes(raw.data(), static_cast<int>(bytes)) == 1, "no random bytes");
  return hex_text(raw);
}

TraceExport::TraceExport(ExportOptions options, metrics::Registry& registry)
    : options_(std::move(options)),
      instance_(random_hex(16)),
      registry_(registry),
      client_(std::make_unique<transport::HttpClient>(
          transport::HttpClientOptions{.base = checked_endpoint(options_.endpoint), .timeout = kPatience})),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

TraceExport::~TraceExport() = default;

void TraceExport::add(std::vector<Span> spans) {
  size_t dropped = 0;
  {
    const std::lock_guard lock(mutex_);
    for (Span& span : spans) {
      if (spans_.size() < kMostKept) {
        spans_.push_back(std::move(span));
      } else {
        ++dropped;
      }
    }
    if (spans_.size() >= kBatch) wanted_.notify_all();
  }
  if (dropped > 0) registry_.count("trace_spans_dropped_total", {}, static_cast<double>(dropped));
}

void TraceExport::work(const std::stop_token& stop) {
  for (;;) {
    std::vector<Span> batch;
    {
      std::unique_lock lock(mutex_);
      wanted_.wait_for(lock, stop, options_.pause, [&] { return spans_.size() >= kBatch; });
      const auto count = static_cast<std::ptrdiff_t>(std::min(spans_.size(), kBatch));
      batch.assign(std::make_move_iterator(spans_.begin()), std::make_move_iterator(spans_.begin() + count));
      spans_.erase(spans_.begin(), spans_.begin() + count);
    }
    const bool stops = stop.stop_requested();
    // One that does not answer must not hold up the end for each batch.
    if (batch.empty() ? stops : !send(batch) && stops) return;
  }
}

bool TraceExport::send(const std::vector<Span>& batch) {
  const std::string body = document(batch);
  try {
    const transport::HttpAnswer answer = client_->send(
        {.method = "POST", .target = "/v1/traces", .body = body, .content_type = "application/json"});
    if (answer.status() / 100 == 2) return true;
  } catch (const Error&) {
    // The collector is away: what it does not get is counted below.
  }
  registry_.count("trace_spans_dropped_total", {}, static_cast<double>(batch.size()));
  return false;
}

std::string TraceExport::document(const std::vector<Span>& batch) const {
  Json spans = Json::array();
  for (const Span& span : batch) spans.push_back(span_json(span));
  const Json resource = {{"attributes", Json::array({attribute("service.name", options_.service),
                                                     attribute("service.version", options_.version),
                                                     attribute("service.instance.id", instance_)})}};
  const Json scope = {{"scope", {{"name", "tensormill"}}}, {"spans", std::move(spans)}};
  const Json whole = {
      {"resourceSpans", Json::array({Json{{"resource", resource}, {"scopeSpans", Json::array({scope})}}})}};
  // A client's fields may be no UTF-8.
  return whole.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tensormill::trace
