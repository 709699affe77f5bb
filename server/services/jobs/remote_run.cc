#include "server/services/jobs/remote_run.h"

#include <algorithm>
#include <string>

#include "runtime/base/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/error_json.h"
#include "runtime/base/json.h"
#include "runtime/npz/npz.h"
#include "server/services/jobs/ask_elsewhere.h"
#include "server/services/jobs/run_package.h"
#include "server/services/workers/work_desk.h"

namespace tensormill::server {

namespace {

using std::chrono::milliseconds;

/// Each holds a thread of the requests, and the others must find one.
constexpr int kMostWaiting = 16;
/// A crash of its child is tried once more.
constexpr int kAttempts = 2;

class Waiting {
public:
  explicit Waiting(std::atomic<int>& count) : count_(count) {
    if (++count_ <= kMostWaiting) return;
    --count_;
    throw Error(ErrorCode::kUnavailable,
                std::to_string(kMostWaiting) + " requests wait for workers elsewhere already");
  }
  ~Waiting() { --count_; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

private:
  std::atomic<int>& count_;
};

services::Timing timing_of(const Json& json) {
  services::Timing timing;
  timing.compute_ms = json.at("compute_ms").get<double>();
  timing.runs_ms = json.at("runs_ms").get<std::vector<double>>();
  if (json.contains("profile")) timing.profile_json = json.at("profile").dump();
  return timing;
}

}  // namespace

storage::JobRow RemoteRuns::submit(const storage::PackageRow& package, const services::NamedTensors& inputs,
                                   const services::RunOptions& options, const services::CallContext& context,
                                   milliseconds timeout) {
  std::vector<npz::NamedTensor> tensors;
  for (const auto& [name, tensor] : inputs) tensors.push_back({name, tensor});
  const Json form = {{"kind", "run"},
                     {"package", package.id.text()},
                     {"inputs", blobs_.put(npz::write_npz(tensors)).text()},
                     {"fill_mode", options.fill_mode ? fill_mode_name(*options.fill_mode) : ""},
                     {"seed", options.seed},
                     {"repeat", options.repeat},
                     {"number", options.number},
                     {"profile", options.profile},
                     {"timeout_ms", timeout.count()},
                     {"on", options.on}};
  storage::JobSubmission submission;
  submission.kind = "run";
  submission.subject = package.model;
  submission.request = Json{{"package", package.id.text()}}.dump();
  submission.resolved = canonical_json(form);
  submission.action_key = Digest::of(submission.resolved).text();
  submission.max_attempts = kAttempts;
  // Each run is its caller's own.
  submission.force = true;
  submission.reuse_result = false;
  submission.needs_package = package.id;
  submission.needs_blobs = blobs_named_by(form);
  submission.demand = options.on;
  submission.submitter = callers_.submitter(context.submitter);
  return queue_.submit(submission).job;
}

services::RunResult RemoteRuns::run(const storage::PackageRow& package, const services::NamedTensors& inputs,
                                    const services::RunOptions& options,
                                    const services::CallContext& context) {
  const Waiting waiting(waiting_);
  const milliseconds timeout =
      options.timeout ? std::min(timeout_, std::chrono::ceil<milliseconds>(*options.timeout)) : timeout_;
  // Until the outputs are read: what a worker brings meanwhile stays, too.
  const storage::BlobHold hold(blobs_);
  const auto begun = std::chrono::steady_clock::now();
  const std::string id = submit(package, inputs, options, context, timeout).id;
  storage::JobRow job = queue_.wait(id, timeout, context.cancelled);
  if (!storage::is_final(job.state)) {
    queue_.cancel(id);
    if (context.cancelled.stop_requested()) throw Error(ErrorCode::kCancelled, "the run was cancelled");
    throw_late(job, options.on, timeout);
  }
  if (job.state == storage::JobState::kCancelled)
    throw Error(ErrorCode::kCancelled, "job " + id + " was cancelled");
  if (job.state == storage::JobState::kFailed) throw error_from_json(parse_json(job.error));
  const Json result = parse_json(job.result);
  services::RunResult answer;
  answer.timing = timing_of(result.at("timing"));
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - begun;
  answer.timing.queue_ms = std::max(0.0, all.count() - answer.timing.compute_ms);
  const auto blob = blobs_.open(Digest::parse(result.at("outputs").get<std::string>()).value());
  for (npz::NamedTensor& tensor : npz::read_npz(blob->bytes()))
    answer.outputs.emplace_back(std::move(tensor.name), std::move(tensor.tensor));
  return answer;
}

}  // namespace tensormill::server
