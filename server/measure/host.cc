#include "server/measure/host.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/jobs/pipe.h"
#include "server/measure/exchange.h"

namespace tensormill::measure {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using tune::TrialError;

constexpr double kMostSeconds = 86400;  // of a limit, which a tuning child may have chosen
constexpr double kRoofSeconds = 60;     // less than a second, but for a machine that others keep busy
constexpr milliseconds kAlive{100};
constexpr const char* kTooLong = "ran for longer than the limit";

}  // namespace

void MeasureHost::start_child() {
  child_.reset();
  jobs::Pipe pipe = jobs::make_pipe_to_child();
  requests_ = std::move(pipe.write);
  jobs::ChildSpec spec;
  spec.command = "child-measure";
  spec.descriptors = {pipe.read.get(), code_fd_, tensor_fd_};
  spec.program = options_.program;
  spec.policy = options_.policy;
  spec.folder = "/";
  spec.limits.nice = jobs::kMeasureNice;
  spec.limits.kind = jobs::ChildKind::kMeasure;
  spec.limits.data_bytes = options_.memory;
  spec.limits.file_bytes = options_.file_bytes;
  spec.limits.confine = options_.confine;
  child_ = std::make_unique<jobs::ChildProcess>(spec);
  left_ = options_.candidates;
  ++children_;
}

Json MeasureHost::measure(const Json& request, double timeout_seconds, const std::function<void()>& alive) {
  // One that was ended since it was last asked has no part in this request.
  if (!child_ || left_ <= 0 || child_->poll(milliseconds(0), [](const auto&, const auto&) {})) start_child();
  const double start = left_ == options_.candidates ? options_.start_seconds : 0;
  --left_;
  // Tasks come and go with tensors of other sizes, which who tunes has written.
  child_->forgive_given_files();
  const std::chrono::duration<double> limit(std::clamp(timeout_seconds, 0.0, kMostSeconds) + start);
  const Deadline deadline = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(limit);
  // Only one that has answered is asked again: whatever leaves here before that ends it.
  std::unique_ptr<jobs::ChildProcess> child = std::move(child_);
  Json answer = ask(*child, request, deadline, alive);
  if (!answer.contains("error")) child_ = std::move(child);
  return answer;
}

Json MeasureHost::ask(jobs::ChildProcess& child, const Json& request, Deadline deadline,
                      const std::function<void()>& alive) {
  // A request may be longer than a pipe holds, and what was measured before may keep the child from reading.
  const auto look = [&] {
    alive();
    child.check_limits();
  };
  const jobs::Written written = jobs::write_pipe(requests_.get(), request.dump() + "\n", deadline, look);
  if (written == jobs::Written::kLate) return failure_json(TrialError::kRunTimeout, kTooLong);
  // How one has gone is told with its end.
  return await(child, deadline, alive);
}

Json MeasureHost::measure_roof(int threads, int vector_bits, int64_t l2_bytes,
                               const std::function<void()>& alive) {
  const Json request = {{"threads", threads}, {"vector_bits", vector_bits}, {"l2_bytes", l2_bytes}};
  Json answer = measure(request, kRoofSeconds, alive);
  return answer.contains("error") ? Json() : answer;
}

Json MeasureHost::await(jobs::ChildProcess& child, Deadline deadline, const std::function<void()>& alive) {
  std::string text;
  const auto on_event = [&](const std::string& type, const std::string& json) {
    if (type == "measured") text = json;
  };
  while (text.empty()) {
    alive();
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return failure_json(TrialError::kRunTimeout, kTooLong);
    const std::optional<jobs::ChildOutcome> end = child.poll(std::min(left, kAlive), on_event);
    // Also one that has said something: who runs on is sound.
    if (end)
      return failure_json(TrialError::kRuntime, end->error ? end->error->message() : "the child ended");
  }
  return parse_json(text);
}

}  // namespace tensormill::measure
