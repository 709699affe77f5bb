#include "server/measure/host.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "runtime/base/error.h"
#include "server/measure/exchange.h"

namespace tensormill::measure {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using tune::TrialError;

constexpr double kMostSeconds = 86400;  // of a limit, which a tuning child may have chosen
constexpr double kStartSeconds = 20;    // for a child to come up, on a busy machine
constexpr double kRoofSeconds = 60;     // less than a second, but for a machine that others keep busy
constexpr milliseconds kAlive{100};

}  // namespace

void MeasureHost::start_child() {
  child_.reset();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno(errno, "cannot make a pipe");
  const FileDescriptor read_end(ends[0]);
  requests_ = FileDescriptor(ends[1]);
  jobs::ChildSpec spec;
  spec.command = "child-measure";
  spec.descriptors = {read_end.get(), code_fd_, tensor_fd_};
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
  --left_;
  // Tasks come and go with tensors of other sizes, which who tunes has written.
  child_->forgive_given_files();
  try {
    write_all(requests_.get(), request.dump() + "\n", "the measuring child");
  } catch (const Error&) {
    // It ended just now: await tells how.
  }
  Json answer = await(timeout_seconds, alive);
  if (answer.contains("error")) child_.reset();
  return answer;
}

Json MeasureHost::measure_roof(int threads, int vector_bits, int64_t l2_bytes,
                               const std::function<void()>& alive) {
  const Json request = {{"threads", threads}, {"vector_bits", vector_bits}, {"l2_bytes", l2_bytes}};
  Json answer = measure(request, kRoofSeconds, alive);
  return answer.contains("error") ? Json() : answer;
}

Json MeasureHost::await(double timeout_seconds, const std::function<void()>& alive) {
  const bool fresh = left_ == options_.candidates - 1;
  const auto deadline = steady_clock::now() +
                        std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(
                            std::clamp(timeout_seconds, 0.0, kMostSeconds) + (fresh ? kStartSeconds : 0)));
  std::string text;
  const auto on_event = [&](const std::string& type, const std::string& json) {
    if (type == "measured") text = json;
  };
  while (text.empty()) {
    alive();
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return failure_json(TrialError::kRunTimeout, "ran for longer than the limit");
    const std::optional<jobs::ChildOutcome> end = child_->poll(std::min(left, kAlive), on_event);
    if (end && text.empty())
      return failure_json(TrialError::kRuntime, end->error ? end->error->message() : "the child ended");
  }
  return parse_json(text);
}

}  // namespace tensormill::measure
