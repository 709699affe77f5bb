// What workers send: POST /v1/workers/…
#include <algorithm>

#include "api/http/labels.h"
#include "api/schema/reader.h"
#include "api/schema/requests.h"
#include "runtime/base/json.h"
#include "runtime/base/names.h"

namespace tensormill::schema {
namespace {

constexpr int kMaxWait = 30;
/// A week: what was carried further is another's.
constexpr int kMaxHold = 7 * 86'400;
constexpr size_t kMaxVerbs = 16;
constexpr size_t kMaxEvents = 1000;
constexpr size_t kMaxKernels = 100'000;
/// What a worker says of itself is kept, and shown to people.
constexpr size_t kMaxFacts = size_t{16} << 10;
constexpr int64_t kMaxOffset = int64_t{1} << 40;

/// The text of an object that is passed on.
std::optional<std::string> read_object(ObjectReader& body, const char* name) {
  const Json* value = body.find(name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  std::string text = canonical_json(*value);
  if (!value->is_object() || text.size() > kMaxFacts) {
    body.problems().add(body.pointer(name),
                        "is no object of at most " + std::to_string(kMaxFacts) + " bytes");
    return std::nullopt;
  }
  return text;
}

/// Names of types that this side gives are not a worker's to use.
bool is_event_type(const std::string& type) {
  if (type.empty() || type.size() > 32 || type == "state" || type == "end") return false;
  return std::all_of(type.begin(), type.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

services::WorkerBeat::Event read_event(const Json& value, const std::string& at, Problems& problems) {
  ObjectReader reader(value, at, problems);
  services::WorkerBeat::Event event;
  reader.required("type", event.type);
  if (!event.type.empty() && !is_event_type(event.type))
    problems.add(pointer_to(at, "type"), "is no type of an event that a worker tells");
  const Json* data = reader.find("data");
  if (data == nullptr || !data->is_object()) {
    problems.add(pointer_to(at, "data"), "is no object");
  } else {
    event.data_json = data->dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  reader.finish();
  return event;
}

}  // namespace

services::WorkerOffer read_worker_offer(std::string_view text) {
  const Json json = parse_json(text);
  Problems problems;
  ObjectReader body(json, "", problems);
  services::WorkerOffer offer;
  const Json* protocol = body.find("protocol");
  if (protocol == nullptr || !protocol->is_number_integer()) {
    problems.add("/protocol", "is no number");
  } else {
    offer.protocol = read_int(*protocol, "/protocol", 0, 1'000'000, problems).value_or(0);
  }
  offer.oldest_protocol = offer.protocol;
  body.optional("oldest_protocol", offer.oldest_protocol, 0, offer.protocol);
  body.required("name", offer.name);
  if (!offer.name.empty() && !is_name(offer.name))
    problems.add("/name", "is \"" + offer.name + "\", which is no name of a worker");
  body.optional("verbs", offer.verbs);
  if (offer.verbs.empty() || offer.verbs.size() > kMaxVerbs) problems.add("/verbs", "is empty, or too long");
  body.optional("labels", offer.labels);
  try {
    if (offer.labels.size() <= http::kMaxLabels)
      offer.labels = http::parse_labels(http::join_labels(offer.labels));
    else
      problems.add("/labels", "are more than " + std::to_string(http::kMaxLabels));
  } catch (const Error& error) {
    problems.add("/labels", error.message());
  }
  body.required("compiler", offer.compiler);
  offer.facts_json = read_object(body, "facts").value_or("{}");
  offer.status_json = read_object(body, "status").value_or("{}");
  body.optional("fresh", offer.is_fresh);
  body.optional("wait_s", offer.wait_s, 0, kMaxWait);
  body.optional("hold_s", offer.hold_s, 0, kMaxHold);
  // What a later protocol adds is not known here, and is no part of the one that is spoken.
  if (offer.protocol == services::kWorkerProtocol) body.finish();
  problems.throw_if_any();
  return offer;
}

services::WorkerBeat read_worker_beat(std::string_view text) {
  const Json json = parse_json(text);
  Problems problems;
  ObjectReader body(json, "", problems);
  services::WorkerBeat beat;
  beat.progress_json = read_object(body, "progress");
  if (const Json* events = body.find("events")) {
    if (!events->is_array() || events->size() > kMaxEvents) {
      problems.add("/events", "is no array of at most " + std::to_string(kMaxEvents));
    } else {
      for (size_t i = 0; i < events->size(); ++i)
        beat.events.push_back(read_event((*events)[i], pointer_to("/events", std::to_string(i)), problems));
    }
  }
  if (const Json* offset = body.find("log_offset"))
    beat.log_offset = read_int(*offset, "/log_offset", 0, kMaxOffset, problems).value_or(0);
  body.optional("log", beat.log);
  beat.status_json = read_object(body, "status");
  body.finish();
  problems.throw_if_any();
  return beat;
}

services::WorkerLeave read_worker_leave(std::string_view text) {
  const Json json = parse_json(text);
  Problems problems;
  ObjectReader body(json, "", problems);
  services::WorkerLeave leave;
  body.required("name", leave.name);
  body.optional("ended", leave.is_ended);
  body.finish();
  problems.throw_if_any();
  return leave;
}

std::vector<std::string> read_worker_kernels(std::string_view text) {
  const Json json = parse_json(text);
  Problems problems;
  ObjectReader body(json, "", problems);
  std::vector<std::string> kernels;
  body.optional("kernels", kernels);
  if (kernels.size() > kMaxKernels) problems.add("/kernels", "are more than " + std::to_string(kMaxKernels));
  body.finish();
  problems.throw_if_any();
  return kernels;
}

}  // namespace tensormill::schema
