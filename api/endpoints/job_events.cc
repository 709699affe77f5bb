// GET /v1/jobs/{job}/events, /v1/events: server-sent events
#include <charconv>
#include <chrono>
#include <functional>
#include <utility>

#include "api/endpoints/context.h"

namespace tensormill::endpoints {
namespace {

constexpr std::chrono::milliseconds kPoll{1000};
constexpr std::chrono::seconds kHeartbeat{15};
/// Clients pass over it.
constexpr std::string_view kComment = ":\n\n";

/// The frames that came next; false at the end.
using NextFrames = std::function<bool(std::string& frames)>;

std::string frame(int64_t id, const std::string& type, const std::string& data) {
  return "id: " + std::to_string(id) + "\nevent: " + type + "\ndata: " + data + "\n\n";
}

class EventStream : public http::ResponseStream {
public:
  explicit EventStream(NextFrames next) : next_(std::move(next)) {}

  bool next(std::string& piece) override {
    if (ended_) return false;
    if (!started_) {
      piece += "retry: 3000\n\n";
      started_ = true;
      return true;
    }
    ended_ = !next_(piece);
    const auto now = std::chrono::steady_clock::now();
    if (!piece.empty()) {
      last_ = now;
    } else if (now - last_ >= kHeartbeat) {
      piece = kComment;
      last_ = now;
    }
    return true;
  }

  std::string idle_piece() const override { return std::string(kComment); }

private:
  NextFrames next_;
  bool started_ = false;
  bool ended_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

http::Response stream_response(NextFrames next) {
  http::Response response;
  response.headers.set("Content-Type", "text/event-stream");
  response.headers.set("Cache-Control", "no-store");
  response.headers.set("X-Accel-Buffering", "no");
  response.body = std::make_shared<EventStream>(std::move(next));
  return response;
}

int64_t last_event_id(const http::Request& request) {
  const std::string_view text = request.headers.get("Last-Event-ID").value_or("0");
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    throw Error(ErrorCode::kInvalidRequest,
                "Last-Event-ID is \"" + std::string(text) + "\", expected a number");
  }
  return number;
}

}  // namespace

http::Response get_job_events(const Context& context, http::Request& request) {
  services::JobService& jobs = *context.services.jobs;
  const std::string& id = request.path_parameter("job");
  int64_t after = last_event_id(request);
  // A job that is not there is told as an error, not in the stream.
  jobs.get(id);
  return stream_response([&jobs, id, after, call = call_context(request)](std::string& frames) mutable {
    const services::JobEvents batch = jobs.events(id, after, kPoll, call);
    for (const services::JobEvent& event : batch.events) {
      after = event.sequence;
      frames += frame(event.sequence, event.type, event.data_json);
    }
    return !batch.ended;
  });
}

http::Response get_events(const Context& context, http::Request& request) {
  services::JobService& jobs = *context.services.jobs;
  // Without the id of a last event there is nothing to go on from: what comes from now on.
  int64_t after = request.headers.has("Last-Event-ID") ? last_event_id(request) : jobs.last_event();
  return stream_response([&jobs, after, call = call_context(request)](std::string& frames) mutable {
    for (const services::PlacedEvent& one : jobs.all_events(after, kPoll, call)) {
      after = one.position;
      frames += frame(one.position, one.event.type,
                      "{\"job\":\"" + one.job + "\",\"sequence\":" + std::to_string(one.event.sequence) +
                          ",\"data\":" + one.event.data_json + "}");
    }
    return !call.cancelled.stop_requested();
  });
}

}  // namespace tensormill::endpoints
