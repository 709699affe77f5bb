#include "server/services/jobs/ask_elsewhere.h"

#include <utility>

#include "api/services/job_service.h"
#include "runtime/base/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/error_json.h"
#include "runtime/base/json.h"
#include "server/services/workers/work_desk.h"

namespace tensormill::server {

namespace {

using std::chrono::steady_clock;

/// How often the job is asked whether it is to stop while it waits.
constexpr std::chrono::milliseconds kAskEvery{500};

/// Nobody waits for the job any more, unless it has ended.
class Asked {
public:
  Asked(jobs::JobQueue& queue, std::string id) : queue_(queue), id_(std::move(id)) {}
  ~Asked() {
    try {
      if (!has_ended_) queue_.cancel(id_);
    } catch (const Error&) {
      // The catalog is away: the next attempt at the job cancels it.
    }
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  void ended() { has_ended_ = true; }

private:
  jobs::JobQueue& queue_;
  const std::string id_;
  bool has_ended_ = false;
};

storage::JobSubmission submission_of(const jobs::JobContext& context, const Json& form, int max_attempts) {
  storage::JobSubmission submission;
  submission.kind = form.at("kind").get<std::string>();
  submission.subject = context.job().id;
  submission.request = Json{{"job", context.job().id}}.dump();
  submission.resolved = canonical_json(form);
  submission.action_key = Digest::of(submission.resolved).text();
  submission.max_attempts = max_attempts;
  submission.needs_blobs = blobs_named_by(form);
  // The same again is asked of a machine again.
  submission.force = true;
  submission.reuse_result = false;
  submission.demand = form.at("on").get<std::string>();
  submission.submitter.name = context.job().submitter;
  return submission;
}

}  // namespace

void throw_late(const storage::JobRow& job, const std::string& on, std::chrono::milliseconds timeout) {
  const bool is_queued = job.state == storage::JobState::kQueued;
  const std::string time = std::to_string(timeout.count()) + " ms";
  if (is_queued)
    throw Error(
        ErrorCode::kDeadlineExceeded,
        "job " + job.id + " waited " + time + " for a worker with the labels " + on,
        {{std::string(services::kOnWhat), "nobody with the labels " + on + " took the work in time"}});
  throw Error(ErrorCode::kDeadlineExceeded, "job " + job.id + " was with a worker, and had " + time);
}

Json ask_elsewhere(jobs::JobQueue& queue, jobs::JobContext& context, Json form, const AskOptions& options) {
  form["job"] = context.job().id;
  const storage::JobSubmission submission = submission_of(context, form, options.max_attempts);
  const std::string id = queue.submit(submission).job.id;
  Asked asked(queue, id);
  const auto begun = steady_clock::now();
  storage::JobRow job;
  do {
    context.keep_alive();
    job = queue.wait(id, kAskEvery, {});
    const bool is_late = options.timeout && steady_clock::now() - begun > *options.timeout;
    if (is_late && !storage::is_final(job.state)) throw_late(job, submission.demand, *options.timeout);
  } while (!storage::is_final(job.state));
  asked.ended();
  if (job.state == storage::JobState::kFailed) throw error_from_json(parse_json(job.error));
  if (job.state == storage::JobState::kCancelled)
    throw Error(ErrorCode::kCancelled,
                "the job " + id + ", which a worker elsewhere was to do, was cancelled");
  return parse_json(job.result);
}

void cancel_asked(jobs::JobQueue& queue, const std::string& kind, const std::string& job) {
  for (const auto state : {storage::JobState::kQueued, storage::JobState::kRunning}) {
    storage::JobFilter filter;
    filter.kind = kind;
    filter.subject = job;
    filter.state = state;
    for (const storage::JobRow& one : queue.catalog().list_jobs(filter, {0, 100}).items) queue.cancel(one.id);
  }
}

}  // namespace tensormill::server
