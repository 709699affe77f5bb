#include "server/services/deployments/executor_child.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/error_json.h"
#include "server/services/deployments/executor_wire.h"

namespace tensormill::server {

namespace {

/// Threads for what the reading thread must not be kept by.
class Tasks {
public:
  explicit Tasks(int threads) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
  ~Tasks() {
    for (std::jthread& thread : threads_) thread.request_stop();
    wake_.notify_all();
  }
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;

  void add(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

private:
  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, stop, [this] { return !tasks_.empty(); })) {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::jthread> threads_;
};

class Executor {
public:
  Executor(std::shared_ptr<HostedPackage> package, int answers, int instances)
      : package_(std::move(package)), answers_(answers), tasks_(instances) {}

  void take(Frame frame) {
    if (frame.kind == FrameKind::kCancel) return cancel(frame.id);
    std::stop_source cancelled;
    {
      const std::lock_guard lock(mutex_);
      running_[frame.id] = cancelled;
    }
    services::CallContext context;
    context.cancelled = cancelled.get_token();
    context.later = [this](std::function<void()> task) { tasks_.add(std::move(task)); };
    const uint64_t id = frame.id;
    try {
      const services::RunOptions options = run_options_from_json(frame.json);
      package_->run(std::move(frame.tensors), options, context,
                    [this, id](services::Outcome<services::RunResult> outcome) { answer(id, outcome); });
    } catch (const std::exception&) {
      services::Outcome<services::RunResult> failed(std::current_exception());
      answer(id, failed);
    }
  }

  void wait_for_the_last() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return running_.empty(); });
  }

private:
  void cancel(uint64_t id) {
    std::stop_source cancelled{std::nostopstate};
    {
      const std::lock_guard lock(mutex_);
      const auto found = running_.find(id);
      if (found != running_.end()) cancelled = found->second;
    }
    cancelled.request_stop();
  }

  void answer(uint64_t id, services::Outcome<services::RunResult>& outcome) {
    try {
      const services::RunResult result = outcome.take();
      write(FrameKind::kResult, id, timing_to_json(result), result.outputs);
    } catch (const Error& error) {
      write(FrameKind::kError, id, {{"error", parse_json(error_to_json(error))}}, {});
    } catch (const std::exception& error) {
      const Error internal(ErrorCode::kInternal, error.what());
      write(FrameKind::kError, id, {{"error", parse_json(error_to_json(internal))}}, {});
    }
    const std::lock_guard lock(mutex_);
    running_.erase(id);
    if (running_.empty()) none_.notify_all();
  }

  void write(FrameKind kind, uint64_t id, Json json, const services::NamedTensors& tensors) {
    const std::string head = frame_head(kind, id, std::move(json), tensors);
    const std::lock_guard lock(writing_);
    // The pipe blocks, and its other end is read for as long as the server lives.
    (void)write_frame(answers_, head, tensors, std::chrono::steady_clock::time_point::max());
  }

  std::shared_ptr<HostedPackage> package_;
  int answers_;
  std::mutex writing_;
  std::mutex mutex_;
  std::condition_variable none_;
  std::map<uint64_t, std::stop_source> running_;
  Tasks tasks_;
};

}  // namespace

void serve_executor(const std::shared_ptr<HostedPackage>& package, int requests, int answers, int instances,
                    uint64_t max_request_bytes) {
  Executor executor(package, answers, instances);
  while (std::optional<Frame> frame = read_frame(requests, max_request_bytes))
    executor.take(std::move(*frame));
  executor.wait_for_the_last();
}

}  // namespace tensormill::server
