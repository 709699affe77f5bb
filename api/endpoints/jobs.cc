// POST, GET /v1/jobs; GET /v1/jobs/{job}, …/log, …/report; POST …/cancel, …/retry
#include <algorithm>
#include <charconv>

#include "api/endpoints/context.h"
#include "api/http/conditional.h"
#include "api/schema/print.h"
#include "api/schema/requests.h"

namespace tensormill::endpoints {
namespace {

constexpr int kMaxWaitSeconds = 30;
/// Requests that may wait at once: each holds a worker, and the others must find one.
constexpr int kMaxWaiting = 8;

/// Seconds of `Prefer: wait=N`, 30 at most; 0 when there is none.
int preferred_wait(const http::Request& request) {
  for (const std::string_view field : request.headers.get_all("Prefer")) {
    for (const std::string_view preference : http::split_list(field)) {
      if (!preference.starts_with("wait=")) continue;
      const std::string_view number = preference.substr(5);
      int seconds = 0;
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), seconds);
      if (error == std::errc::result_out_of_range) return kMaxWaitSeconds;
      if (error == std::errc() && seconds > 0) return std::min(seconds, kMaxWaitSeconds);
    }
  }
  return 0;
}

/// Counts a waiting request for as long as it lives; not granted when there are too many.
class WaitingSlot {
public:
  explicit WaitingSlot(std::atomic<int>& waiting) : waiting_(waiting), granted_(++waiting <= kMaxWaiting) {}
  ~WaitingSlot() { --waiting_; }
  WaitingSlot(const WaitingSlot&) = delete;
  WaitingSlot& operator=(const WaitingSlot&) = delete;
  bool granted() const { return granted_; }

private:
  std::atomic<int>& waiting_;
  bool granted_;
};

http::Response job_response(const services::Job& job, int status) {
  http::Response response = http::json_response(schema::print(schema::to_json(job)), status);
  response.headers.set("Location", "/v1/jobs/" + job.id);
  if (!services::is_final(job.state)) response.headers.set("Retry-After", "1");
  return response;
}

services::Submission submit(services::JobService& jobs, const services::JobRequest& body,
                            const services::SubmitOptions& options, const services::CallContext& call) {
  if (const auto* tune = std::get_if<services::TuneRequest>(&body))
    return jobs.submit_tune(*tune, options, call);
  if (const auto* benchmark = std::get_if<services::BenchmarkRequest>(&body))
    return jobs.submit_benchmark(*benchmark, options, call);
  if (const auto* verify = std::get_if<services::VerifyRequest>(&body))
    return jobs.submit_verify(*verify, options, call);
  if (const auto* report = std::get_if<services::ReportRequest>(&body))
    return jobs.submit_report(*report, options, call);
  return jobs.submit_compile(std::get<services::CompileRequest>(body), options, call);
}

}  // namespace

http::Response submit_job(const Context& context, http::Request& request) {
  const services::JobRequest body = schema::read_job_request(json_body(request));
  services::JobService& jobs = *context.services.jobs;
  const services::CallContext call = call_context(request);
  services::Submission submission = submit(jobs, body, {idempotency_key(request)}, call);
  const int seconds = preferred_wait(request);
  if (seconds > 0 && !services::is_final(submission.job.state)) {
    const WaitingSlot slot(context.waiting);
    if (slot.granted()) submission.job = jobs.wait(submission.job.id, std::chrono::seconds(seconds), call);
  }
  Json json = schema::to_json(submission.job);
  json["cached"] = submission.cached;
  http::Response response =
      job_response(submission.job, services::is_final(submission.job.state) ? 200 : 202);
  response.body = schema::print(json);
  if (seconds > 0) response.headers.set("Preference-Applied", "wait=" + std::to_string(seconds));
  return response;
}

http::Response list_jobs(const Context& context, http::Request& request) {
  services::JobQuery query;
  query.page = page_query(request);
  query.kind = request.query_value("kind").value_or("");
  query.model = request.query_value("model").value_or("");
  if (const auto state = request.query_value("state")) {
    query.state = services::job_state_from_name(*state);
    if (!query.state) {
      throw Error(ErrorCode::kInvalidRequest,
                  "query parameter state is \"" + std::string(*state) +
                      "\", expected queued, running, succeeded, failed or cancelled");
    }
  }
  const auto page = context.services.jobs->list(query);
  return page_response(request, schema::print(schema::page_json(page)), page.next_cursor);
}

http::Response get_job(const Context& context, http::Request& request) {
  http::Response response = job_response(context.services.jobs->get(request.path_parameter("job")), 200);
  response.headers.remove("Location");
  return response;
}

http::Response get_job_log(const Context& context, http::Request& request) {
  return http::serve_content(request, context.services.jobs->log(request.path_parameter("job")), "",
                             "text/plain; charset=utf-8");
}

http::Response get_job_report(const Context& context, http::Request& request) {
  const std::string_view format = request.query_value("format").value_or("json");
  if (format != "json" && format != "html") {
    throw Error(ErrorCode::kInvalidRequest,
                "query parameter format is \"" + std::string(format) + "\", expected json or html");
  }
  const auto form = format == "html" ? services::ReportForm::kHtml : services::ReportForm::kJson;
  std::string text = context.services.jobs->report(request.path_parameter("job"), form);
  if (form == services::ReportForm::kJson) return http::json_response(std::move(text), 200);
  http::Response response = http::text_response(std::move(text), "text/html; charset=utf-8");
  // Names are strangers': the page has its style and nothing else, and is of no origin.
  response.headers.set("Content-Security-Policy",
                       "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox");
  return response;
}

http::Response cancel_job(const Context& context, http::Request& request) {
  const services::CancelResult result =
      context.services.jobs->cancel(request.path_parameter("job"), call_context(request));
  return job_response(result.job, result.stopped || services::is_final(result.job.state) ? 200 : 202);
}

http::Response retry_job(const Context& context, http::Request& request) {
  return job_response(context.services.jobs->retry(request.path_parameter("job"), call_context(request)),
                      202);
}

}  // namespace tensormill::endpoints
