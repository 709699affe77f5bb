#include "server/services/deployments/executor_link.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "runtime/base/error_json.h"
#include "server/jobs/pipe.h"
#include "server/services/forms.h"
#include "server/services/jobs/child_run.h"

namespace tensormill::server {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{100};            // at deadlines and clients that have gone
constexpr std::chrono::seconds kGrace{2};     // past its deadline a request's process counts as hung
constexpr std::chrono::seconds kLongRun{10};  // a process that lived so long is replaced at once
constexpr milliseconds kFirstPause{100}, kLongestPause{30'000};
constexpr int kPipeBytes = 1 << 20;

/// Fewer changes of process for each tensor; a system that allows less has its reasons.
jobs::Pipe enlarged(jobs::Pipe pipe) {
  (void)::fcntl(pipe.write.get(), F_SETPIPE_SZ, kPipeBytes);
  return pipe;
}

/// The thread that reads a process's answers; it ends with the process, whose end of the pipe goes then.
struct Reader {
  ~Reader() {
    child.cancel();
    thread.join();
  }
  jobs::ChildProcess& child;
  std::thread thread;
};

services::Outcome<services::RunResult> failure(const Error& error) {
  return services::Outcome<services::RunResult>(std::make_exception_ptr(error));
}

}  // namespace

struct ExecutorLink::Pending {
  uint64_t id = 0;
  std::string head;
  services::NamedTensors inputs;  ///< until they are sent
  Clock::time_point deadline;
  bool sent = false;  ///< guarded by writing_
  Done done;
  std::optional<std::stop_callback<std::function<void()>>> watch;
};

ExecutorLink::ExecutorLink(const MemberBlobs& members, const HostOptions& options,
                           const IsolationOptions& isolation)
    : members_(members), options_(options), isolation_(isolation) {}

ExecutorLink::Ready ExecutorLink::start() {
  supervisor_ = std::thread([self = shared_from_this()] { self->supervise(); });
  const std::stop_callback on_stop(options_.stop, [this] {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (child_ != nullptr) child_->cancel();
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_ || refusal_ || stopped_; });
  if (refusal_) throw Error(*refusal_);
  if (!ready_) throw Error(ErrorCode::kCancelled, "the server stops");
  return *ready_;
}

void ExecutorLink::stop() {
  bool own_thread = std::this_thread::get_id() == supervisor_.get_id();
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    own_thread = own_thread || std::this_thread::get_id() == reader_;
    if (child_ != nullptr) child_->cancel();
  }
  changed_.notify_all();
  if (!supervisor_.joinable()) return;
  // The last request's answer may hold the last reference to the package.
  own_thread ? supervisor_.detach() : supervisor_.join();
}

void ExecutorLink::require_room() {
  const std::lock_guard lock(mutex_);
  const size_t most = static_cast<size_t>(options_.instances) * static_cast<size_t>(options_.max_batch) +
                      static_cast<size_t>(options_.max_queue);
  if (stopped_) throw Error(ErrorCode::kUnavailable, "the process of the package has been stopped");
  if (pending_.size() >= most)
    throw Error(ErrorCode::kUnavailable,
                "the queue is full: " + std::to_string(pending_.size()) + " requests");
}

void ExecutorLink::submit(services::NamedTensors inputs, const services::RunOptions& options,
                          Clock::time_point deadline, const std::stop_token& cancelled, Done done) {
  const auto pending = std::make_shared<Pending>();
  pending->inputs = std::move(inputs);
  pending->deadline = deadline;
  pending->done = std::move(done);
  require_room();
  {
    const std::lock_guard lock(mutex_);
    pending->id = next_id_++;
  }
  pending->head = frame_head(FrameKind::kRun, pending->id, run_options_to_json(options), pending->inputs);
  {
    const std::lock_guard lock(mutex_);
    pending_[pending->id] = pending;
  }
  pending->watch.emplace(cancelled, [link = weak_from_this(), id = pending->id] {
    if (const auto self = link.lock()) {
      const std::lock_guard lock(self->mutex_);
      self->cancelled_.push_back(id);
    }
  });
  send(pending);
}

ExecutorLink::PendingPtr ExecutorLink::take(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(id);
  if (found == pending_.end()) return nullptr;
  PendingPtr pending = std::move(found->second);
  pending_.erase(found);
  return pending;
}

void ExecutorLink::send(const PendingPtr& pending) {
  bool taken = true;
  {
    const std::lock_guard lock(writing_);
    if (!is_up_ || pending->sent) return;
    pending->sent = true;
    const auto latest = std::min(pending->deadline, Clock::now() + kLongRun);
    taken = write_frame(to_process_.get(), pending->head, pending->inputs, latest);
    pending->inputs.clear();
  }
  if (taken) return;
  // Half a frame cannot be taken back: what follows would be read as its rest.
  const std::lock_guard lock(mutex_);
  if (child_ != nullptr) child_->cancel();
}

void ExecutorLink::send_waiting() {
  std::vector<PendingPtr> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, pending] : pending_) all.push_back(pending);
  }
  for (const PendingPtr& pending : all) send(pending);
}

jobs::ChildSpec ExecutorLink::spec(int requests, int answers) const {
  const Json request = {{"instances", options_.instances},
                        {"max_queue", options_.max_queue},
                        {"warmup", options_.warmup},
                        {"max_batch", options_.max_batch},
                        {"max_delay_us", options_.max_delay.count()},
                        {"threads", isolation_.threads},
                        {"memory", isolation_.memory},
                        {"run_timeout_ms", isolation_.run_timeout.count()}};
  jobs::ChildSpec spec;
  spec.command = "child-execute";
  spec.arguments = {request.dump()};
  spec.descriptors = descriptors_of(members_);
  spec.descriptors.push_back(requests);
  spec.descriptors.push_back(answers);
  spec.folder = "/";
  spec.program = isolation_.program;
  spec.policy = isolation_.policy;
  spec.limits.kind = jobs::ChildKind::kExecutor;
  spec.limits.nice = jobs::kMeasureNice;
  spec.limits.data_bytes = process_memory(isolation_, options_.instances);
  return spec;
}

void ExecutorLink::supervise() {
  int failures = 0;
  while (true) {
    const Clock::time_point started = Clock::now();
    std::optional<Error> end;
    try {
      end = run_process();
    } catch (const Error& error) {
      end = error;
    } catch (const std::exception& error) {
      end = Error(ErrorCode::kInternal, error.what());
    }
    end_process();
    const std::optional<Error> why =
        end ? end : Error(ErrorCode::kUnavailable, "the process has been stopped");
    bool was_ready = false;
    {
      const std::lock_guard lock(mutex_);
      was_ready = ready_.has_value();
      if (!was_ready) refusal_ = *why;
    }
    changed_.notify_all();
    if (!was_ready) return;
    if (Clock::now() - started >= kLongRun) failures = 0;
    // Those that it had are lost with it. Others wait, unless it cannot come up at all.
    fail(*why, failures > 1);
    if (!wait_before_next(failures++)) break;
  }
  fail(Error(ErrorCode::kUnavailable, "the process of the package has been stopped"), true);
}

/// False after stop().
bool ExecutorLink::wait_before_next(int failures) {
  const auto pause =
      failures == 0 ? milliseconds(0) : std::min(kFirstPause * (1 << std::min(failures, 12)), kLongestPause);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, pause, [this] { return stopped_; });
  return !stopped_;
}

std::optional<Error> ExecutorLink::run_process() {
  jobs::Pipe requests = enlarged(jobs::make_pipe_to_child());
  jobs::Pipe answers = enlarged(jobs::make_pipe());
  jobs::ChildProcess child(spec(requests.read.get(), answers.write.get()));
  requests.read = FileDescriptor();
  answers.write = FileDescriptor();
  {
    const std::lock_guard writing(writing_);
    to_process_ = std::move(requests.write);
  }
  Reader reader{child, std::thread([this, fd = answers.read.get()] { read_answers(fd); })};
  {
    const std::lock_guard lock(mutex_);
    child_ = &child;
    reader_ = reader.thread.get_id();
    if (stopped_) child.cancel();
  }
  std::optional<jobs::ChildOutcome> outcome;
  const auto on_event = [this](const std::string& type, const std::string& json) {
    if (type == "ready") became_ready(json);
  };
  while (!outcome) {
    outcome = child.poll(kLook, on_event);
    if (!outcome) look_after(child);
  }
  end_process();
  if (!outcome->error) return Error(ErrorCode::kJobFailed, "the process that runs the package ended");
  const Error& error = *outcome->error;
  const bool said =
      outcome->end == jobs::ChildEnd::kUserError || outcome->end == jobs::ChildEnd::kOutOfMemory;
  if (said) return error;
  return Error(ErrorCode::kJobFailed,
               "the process that runs the package ended, and is replaced: " + error.message());
}

void ExecutorLink::end_process() {
  {
    const std::lock_guard writing(writing_);
    is_up_ = false;
    to_process_ = FileDescriptor();
  }
  const std::lock_guard lock(mutex_);
  child_ = nullptr;
}

void ExecutorLink::became_ready(const std::string& text) {
  const Json json = parse_json(text);
  Ready ready{specs_from_json(json.at("inputs")), specs_from_json(json.at("outputs")),
              json.at("memory_bytes").get<int64_t>()};
  {
    const std::lock_guard lock(mutex_);
    if (!ready_) ready_ = std::move(ready);
  }
  {
    const std::lock_guard writing(writing_);
    is_up_ = true;
  }
  changed_.notify_all();
  send_waiting();
}

void ExecutorLink::read_answers(int fd) {
  try {
    while (std::optional<Frame> frame = read_frame(fd, isolation_.max_answer_bytes))
      take_answer(std::move(*frame));
    return;
  } catch (const Error&) {
    // What does not speak as it should is ended below, and its requests with it.
  } catch (const std::bad_alloc&) {
    // As an answer that is too large.
  }
  const std::lock_guard lock(mutex_);
  if (child_ != nullptr) child_->cancel();
}

void ExecutorLink::take_answer(Frame frame) {
  const PendingPtr pending = take(frame.id);
  if (!pending) return;  // nobody waits for it any more
  pending->done(services::Outcome<services::RunResult>::of([&] {
    try {
      if (frame.kind == FrameKind::kError) throw error_from_json(frame.json.at("error"));
      services::RunResult result;
      read_timing(frame.json, result);
      result.outputs = std::move(frame.tensors);
      return result;
    } catch (const Json::exception&) {
      throw Error(ErrorCode::kJobFailed,
                  "the process that runs the package gave no answer of the right form");
    }
  }));
}

void ExecutorLink::look_after(jobs::ChildProcess& child) {
  std::vector<uint64_t> gone;
  std::vector<uint64_t> late;
  const Clock::time_point now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    gone.swap(cancelled_);
    for (const auto& [id, pending] : pending_) {
      if (now >= pending->deadline + kGrace) late.push_back(id);
    }
  }
  for (const uint64_t id : gone) {
    const PendingPtr pending = take(id);
    if (!pending) continue;
    pending->done(failure(Error(ErrorCode::kCancelled, "the client has gone")));
    const std::lock_guard writing(writing_);
    const std::string head = frame_head(FrameKind::kCancel, id, Json::object(), {});
    if (is_up_ && pending->sent && !write_frame(to_process_.get(), head, {}, Clock::now() + kGrace))
      child.cancel();
  }
  bool hung = false;
  for (const uint64_t id : late) {
    const PendingPtr pending = take(id);
    if (!pending) continue;
    {
      const std::lock_guard writing(writing_);
      hung = hung || pending->sent;
    }
    pending->done(
        failure(Error(ErrorCode::kDeadlineExceeded, "the deadline passed before the work was done")));
  }
  // A sound process answers at the deadline. This one is kept by something that does not end.
  if (hung) child.cancel();
}

/// Answers those that a process had and, with `unsent`, those that wait for one.
void ExecutorLink::fail(const Error& error, bool unsent) {
  std::vector<PendingPtr> lost;
  {
    const std::lock_guard writing(writing_);
    const std::lock_guard lock(mutex_);
    for (auto one = pending_.begin(); one != pending_.end();) {
      const bool ends = one->second->sent || unsent;
      if (ends) lost.push_back(one->second);
      one = ends ? pending_.erase(one) : std::next(one);
    }
  }
  for (const PendingPtr& pending : lost) pending->done(failure(error));
}

}  // namespace tensormill::server
