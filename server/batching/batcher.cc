#include "server/batching/batcher.h"

#include <algorithm>

namespace tensormill::batching {

Batcher::Batcher(const Limits& limits, RunBatch run) : limits_(limits), run_(std::move(run)) {
  TM_CHECK(limits.instances > 0 && limits.max_rows > 0, "a batcher without instances or rows");
  for (int i = limits.instances - 1; i >= 0; --i) free_.push_back(i);
}

int Batcher::waiting() const {
  const Lock lock(mutex_);
  return static_cast<int>(queue_.size());
}

void Batcher::serve(const RequestPtr& request) {
  TM_CHECK(request->rows > 0 && request->rows <= limits_.max_rows, "a request that fits no batch");
  request->arrived = Clock::now();
  Lock lock(mutex_);
  enqueue(request);
  const auto& state = request->state_;
  while (state == Request::State::kQueued) {
    const bool ready = request->wake_.wait_until(lock, request->cancelled, request->deadline, [&] {
      return state != Request::State::kQueued || may_lead(*request);
    });
    if (!ready) give_up(request);
    if (state == Request::State::kQueued) lead(lock, request);
  }
  const bool done = request->wake_.wait_until(lock, request->cancelled, request->deadline,
                                              [&] { return state == Request::State::kDone; });
  if (!done) give_up(request);
  if (request->failure) throw Error(*request->failure);
}

void Batcher::enqueue(const RequestPtr& request) {
  // While an instance is free the queue holds what is being gathered.
  const int64_t gathering = free_.empty() ? 0 : limits_.max_rows;
  if (static_cast<int64_t>(queue_.size()) >= limits_.max_queue + gathering) {
    throw Error(ErrorCode::kUnavailable, "the queue is full: " + std::to_string(queue_.size()) +
                                             " requests wait, the limit is " +
                                             std::to_string(limits_.max_queue));
  }
  const auto after =
      std::upper_bound(queue_.begin(), queue_.end(), request,
                       [](const RequestPtr& a, const RequestPtr& b) { return a->priority < b->priority; });
  queue_.insert(after, request);
  if (leader_ && is_full(leader_)) leader_->wake_.notify_one();
}

void Batcher::leave_queue(const RequestPtr& request) {
  queue_.erase(std::remove(queue_.begin(), queue_.end(), request), queue_.end());
}

void Batcher::give_up(const RequestPtr& request) {
  const bool gone = request->cancelled.stop_requested();
  const bool queued = request->state_ == Request::State::kQueued;
  leave_queue(request);
  wake_front();
  if (gone) throw Error(ErrorCode::kCancelled, "the client has gone");
  throw Error(ErrorCode::kDeadlineExceeded,
              queued ? "no instance became free in time" : "the run did not end in time");
}

bool Batcher::may_lead(const Request& request) const {
  return !leader_ && !free_.empty() && queue_.front().get() == &request;
}

/// What runs when `leader` starts now: itself, then those that wait, in their order, as long as they fit.
std::vector<RequestPtr> Batcher::fitting(const RequestPtr& leader) const {
  std::vector<RequestPtr> batch = {leader};
  int64_t rows = leader->rows;
  const Clock::time_point now = Clock::now();
  for (const RequestPtr& other : queue_) {
    if (leader->alone || rows == limits_.max_rows) break;
    if (other == leader || other->alone || rows + other->rows > limits_.max_rows) continue;
    if (other->deadline <= now || other->cancelled.stop_requested()) continue;
    rows += other->rows;
    batch.push_back(other);
  }
  return batch;
}

bool Batcher::is_full(const RequestPtr& leader) const {
  if (leader->alone) return true;
  int64_t rows = 0;
  for (const RequestPtr& one : fitting(leader)) rows += one->rows;
  return rows == limits_.max_rows;
}

void Batcher::lead(Lock& lock, const RequestPtr& request) {
  const Clock::time_point until = std::min(request->arrived + limits_.max_delay, request->deadline);
  if (limits_.max_delay.count() > 0 && !is_full(request)) {
    leader_ = request;
    request->wake_.wait_until(lock, request->cancelled, until, [&] { return is_full(request); });
    leader_ = nullptr;
    if (request->cancelled.stop_requested()) give_up(request);
  }
  run(lock, fitting(request));
}

void Batcher::run(Lock& lock, const std::vector<RequestPtr>& batch) {
  const Clock::time_point now = Clock::now();
  for (const RequestPtr& one : batch) {
    leave_queue(one);
    one->state_ = Request::State::kRunning;
    one->started = now;
  }
  const int instance = free_.back();
  free_.pop_back();
  // Another instance may be free for those that are left.
  wake_front();
  lock.unlock();
  std::optional<Error> failure;
  try {
    run_(instance, batch);
  } catch (const Error& error) {
    failure = error;
  } catch (const std::exception& error) {
    failure = Error(ErrorCode::kInternal, error.what());
  }
  lock.lock();
  free_.push_back(instance);
  for (const RequestPtr& one : batch) {
    if (failure && !one->failure) one->failure = failure;
    one->state_ = Request::State::kDone;
  }
  wake_front();
  // Without the lock, which those who wake take first. The front of the batch is the caller.
  lock.unlock();
  for (size_t i = 1; i < batch.size(); ++i) batch[i]->wake_.notify_one();
  lock.lock();
}

void Batcher::wake_front() {
  if (!queue_.empty() && !free_.empty() && !leader_) queue_.front()->wake_.notify_one();
}

}  // namespace tensormill::batching
