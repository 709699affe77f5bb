// GET /v1/jobs/{job}/events: server-sent events
#include <charconv>
#include <chrono>

#include "api/endpoints/context.h"

namespace tensormill::endpoints {
namespace {

constexpr std::chrono::milliseconds kPoll{1000};
constexpr std::chrono::seconds kHeartbeat{15};

class JobEventStream : public http::ResponseStream {
public:
  JobEventStream(services::JobService& jobs, std::string id, int64_t after, services::CallContext call)
      : jobs_(jobs), id_(std::move(id)), after_(after), call_(std::move(call)) {}

  bool next(std::string& piece) override {
    if (ended_) return false;
    if (!started_) {
      piece += "retry: 3000\n\n";
      started_ = true;
      return true;
    }
    const services::JobEvents batch = jobs_.events(id_, after_, kPoll, call_);
    for (const services::JobEvent& event : batch.events) {
      after_ = event.sequence;
      piece += "id: " + std::to_string(event.sequence) + "\nevent: " + event.type +
               "\ndata: " + event.data_json + "\n\n";
    }
    ended_ = batch.ended;
    const auto now = std::chrono::steady_clock::now();
    if (!piece.empty()) {
      last_ = now;
    } else if (now - last_ >= kHeartbeat) {
      piece = ":\n\n";
      last_ = now;
    }
    return true;
  }

private:
  services::JobService& jobs_;
  std::string id_;
  int64_t after_;
  services::CallContext call_;
  bool started_ = false;
  bool ended_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

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
  const int64_t after = last_event_id(request);
  // A job that is not there is told as an error, not in the stream.
  jobs.get(id);
  http::Response response;
  response.headers.set("Content-Type", "text/event-stream");
  response.headers.set("Cache-Control", "no-store");
  response.headers.set("X-Accel-Buffering", "no");
  response.body = std::make_shared<JobEventStream>(jobs, id, after, call_context(request));
  return response;
}

}  // namespace tensormill::endpoints
