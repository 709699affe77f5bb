#include "server/batching/batcher.h"

#include <algorithm>

namespace tensormill::batching {

namespace {

bool contains(const std::vector<RequestPtr>& batch, const RequestPtr& request) {
  return std::find(batch.begin(), batch.end(), request) != batch.end();
}

}  // namespace

Batcher::Batcher(const Limits& limits, RunBatch run) : limits_(limits), run_(std::move(run)) {
  TM_CHECK(limits.instances > 0 && limits.max_rows > 0, "a batcher without instances or rows");
  for (int i = limits.instances - 1; i >= 0; --i) free_.push_back(i);
}

Batcher::~Batcher() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  deadline_changed_.notify_all();
  if (!watch_.joinable()) return;
  if (watch_.get_id() == std::this_thread::get_id()) {
    // The answer to a late request was the last that held the owner.
    *gone_ = true;
    watch_.detach();
  } else {
    watch_.join();
  }
}

int Batcher::waiting() const {
  const Lock lock(mutex_);
  return static_cast<int>(queue_.size());
}

void Batcher::submit(const RequestPtr& request) {
  TM_CHECK(request->rows > 0 && request->rows <= limits_.max_rows, "a request that fits no batch");
  request->arrived = Clock::now();
  // Before others see the request: who answers it ends this.
  const std::weak_ptr<Request> weak = request;
  request->watch_.emplace(request->cancelled, [this, weak] {
    if (const RequestPtr gone = weak.lock()) leave(gone);
  });
  Lock lock(mutex_);
  try {
    if (request->cancelled.stop_requested()) throw Error(ErrorCode::kCancelled, "the client has gone");
    enqueue(request);
  } catch (const Error&) {
    lock.unlock();
    request->watch_.reset();
    throw;
  }
  watch_deadline(request);
  if (!request->later) return work(lock);
  // As many as there are instances find all that is queued.
  if (planned_ >= free_.size()) return;
  ++planned_;
  lock.unlock();
  work_later(request->later, request->owner);
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
  request->state_ = Request::State::kQueued;
}

/// Runs one batch on a thread that is not to be kept for more; the rest in a later turn of it.
void Batcher::work_later(const std::function<void(Request::Task)>& later,
                         const std::shared_ptr<void>& owner) {
  later([this, later, owner] {
    Lock lock(mutex_);
    --planned_;
    const RequestPtr leader = next_leader();
    if (!leader || !may_run()) return;
    run(lock, fitting(leader));
    if (queue_.empty() || planned_ >= free_.size()) return;
    ++planned_;
    lock.unlock();
    work_later(later, owner);
  });
}

/// Runs what is queued on this thread until nothing is left that no other thread gathers, or no instance.
void Batcher::work(Lock& lock) {
  while (true) {
    take_over_full();
    const RequestPtr leader = next_leader();
    if (!leader || !may_run()) return;
    if (Clock::now() < leader->arrived + limits_.max_delay && !is_full(leader)) {
      gather(lock, leader);
    } else {
      run(lock, fitting(leader));
    }
  }
}

/// A batch that is full now is run by the thread that filled it, which is awake.
void Batcher::take_over_full() {
  std::erase_if(gatherers_, [this](Gatherer* one) {
    if (!is_full(one->leader)) return false;
    one->over = true;
    one->wake.notify_one();
    return true;
  });
}

/// The first request that is in no gatherer's batch; null when there is none.
RequestPtr Batcher::next_leader() const {
  Batch planned;
  for (const Gatherer* one : gatherers_) {
    const Batch batch = fitting(one->leader);
    planned.insert(planned.end(), batch.begin(), batch.end());
  }
  for (const RequestPtr& request : queue_) {
    if (!contains(planned, request)) return request;
  }
  return nullptr;
}

/// What runs when `leader` starts now: itself, then those that wait, in their order, as long as they fit.
Batcher::Batch Batcher::fitting(const RequestPtr& leader) const {
  Batch batch = {leader};
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

void Batcher::gather(Lock& lock, const RequestPtr& leader) {
  Gatherer self;
  self.leader = leader;
  gatherers_.push_back(&self);
  self.wake.wait_until(lock, leader->arrived + limits_.max_delay, [&] { return self.over; });
  gatherers_.remove(&self);
}

void Batcher::run(Lock& lock, const Batch& batch) {
  const Clock::time_point now = Clock::now();
  for (const RequestPtr& one : batch) {
    std::erase(queue_, one);
    running_.push_back(one);
    release_gatherer(one);
    one->state_ = Request::State::kRunning;
    one->started = now;
  }
  const int instance = free_.back();
  free_.pop_back();
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
  Batch answered;
  for (const RequestPtr& one : batch) {
    if (one->state_ != Request::State::kRunning) continue;  // it left
    one->state_ = Request::State::kDone;
    std::erase(running_, one);
    answered.push_back(one);
  }
  lock.unlock();
  for (const RequestPtr& one : answered) {
    one->watch_.reset();
    one->done(one->failure ? one->failure : failure);
  }
  lock.lock();
}

/// The client has gone. Runs on the thread that says so, which may be in the middle of submit().
void Batcher::leave(const RequestPtr& request) {
  {
    const Lock lock(mutex_);
    const bool waits =
        request->state_ == Request::State::kQueued || request->state_ == Request::State::kRunning;
    if (!waits) return;
    request->state_ = Request::State::kDone;
    std::erase(queue_, request);
    std::erase(running_, request);
    release_gatherer(request);
  }
  request->done(Error(ErrorCode::kCancelled, "the client has gone"));
}

void Batcher::release_gatherer(const RequestPtr& leader) {
  for (Gatherer* one : gatherers_) {
    if (one->leader != leader) continue;
    one->over = true;
    one->wake.notify_one();
    gatherers_.remove(one);
    return;
  }
}

void Batcher::watch_deadline(const RequestPtr& request) {
  if (request->deadline >= next_deadline_) return;
  next_deadline_ = request->deadline;
  if (watch_.joinable()) {
    deadline_changed_.notify_one();
  } else {
    watch_ = std::thread([this, gone = gone_] { watch_deadlines(gone); });
  }
}

void Batcher::watch_deadlines(const std::shared_ptr<bool>& gone) {
  Lock lock(mutex_);
  while (!stopped_) {
    Batch late = take_late(Clock::now());
    if (late.empty()) {
      if (next_deadline_ == Clock::time_point::max()) {
        deadline_changed_.wait(lock);
      } else {
        deadline_changed_.wait_until(lock, next_deadline_);
      }
      continue;
    }
    lock.unlock();
    for (const RequestPtr& one : late) {
      one->watch_.reset();
      const bool ran = one->started != Clock::time_point();
      one->done(Error(ErrorCode::kDeadlineExceeded,
                      ran ? "the run did not end in time" : "no instance became free in time"));
    }
    late.clear();
    if (*gone) return;
    lock.lock();
  }
}

/// Those whose time is over; the deadline of the next one goes to next_deadline_.
Batcher::Batch Batcher::take_late(Clock::time_point now) {
  Batch late;
  next_deadline_ = Clock::time_point::max();
  for (Batch* requests : {&queue_, &running_}) {
    std::erase_if(*requests, [&](const RequestPtr& one) {
      if (one->deadline > now) {
        next_deadline_ = std::min(next_deadline_, one->deadline);
        return false;
      }
      one->state_ = Request::State::kDone;
      release_gatherer(one);
      late.push_back(one);
      return true;
    });
  }
  return late;
}

}  // namespace tensormill::batching
