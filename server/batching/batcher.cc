#include "server/batching/batcher.h"

#include <algorithm>
#include <system_error>

namespace tensormill::batching {

namespace {

/// Runs this long gain more from warm caches than the move to them takes, some ten microseconds.
constexpr std::chrono::milliseconds kWorthAMove{1};

bool contains(const std::vector<RequestPtr>& batch, const RequestPtr& request) {
  return std::find(batch.begin(), batch.end(), request) != batch.end();
}

}  // namespace

Batcher::OwnThread::~OwnThread() {
  if (!thread.joinable()) return;
  if (thread.get_id() == std::this_thread::get_id()) {
    *gone = true;
    thread.detach();
  } else {
    thread.join();
  }
}

Batcher::Batcher(const Limits& limits, RunBatch run) : limits_(limits), run_(std::move(run)) {
  TM_CHECK(limits.instances > 0 && limits.max_rows > 0, "a batcher without instances or rows");
  for (int i = limits.instances - 1; i >= 0; --i) free_.push_back(i);
  if (!gathers()) return;
  for (int i = 0; i < limits.instances; ++i) gatherers_.push_back(std::make_unique<Gatherer>());
  try {
    for (int i = 0; i < limits.instances; ++i) {
      OwnThread& own = gatherers_[static_cast<size_t>(i)]->own;
      own.thread = std::thread([this, i, gone = own.gone] { gather(i, gone); });
    }
  } catch (const std::system_error& error) {
    // Those that run would be waited for.
    stop();
    throw Error(ErrorCode::kUnavailable, std::string("no thread for an instance: ") + error.what());
  }
}

Batcher::~Batcher() { stop(); }

void Batcher::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  deadline_changed_.notify_all();
  for (const auto& gatherer : gatherers_) gatherer->wake.notify_all();
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
  if (gathers()) return wake_gatherers();
  if (!request->later) return work(lock);
  // As many as there are instances find all that is queued.
  if (planned_ >= free_.size()) return;
  ++planned_;
  lock.unlock();
  work_later(request->later, request->owner);
}

Place::~Place() {
  const std::lock_guard lock(batcher_.mutex_);
  --batcher_.places_;
}

std::unique_ptr<Place> Batcher::admit() {
  const std::lock_guard lock(mutex_);
  check_room();
  ++places_;
  return std::unique_ptr<Place>(new Place(*this));
}

void Batcher::check_room() const {
  // While an instance is free the queue holds what is being gathered.
  const int64_t gathering = free_.empty() ? 0 : limits_.max_rows;
  const size_t waiting = queue_.size() + places_;
  if (static_cast<int64_t>(waiting) < limits_.max_queue + gathering) return;
  throw Error(ErrorCode::kUnavailable, "the queue is full: " + std::to_string(waiting) +
                                           " requests wait, the limit is " +
                                           std::to_string(limits_.max_queue));
}

void Batcher::enqueue(const RequestPtr& request) {
  check_room();
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
    if (queue_.empty() || free_.empty()) return;
    run(lock, free_.back(), fitting(queue_.front()));
    if (queue_.empty() || planned_ >= free_.size()) return;
    ++planned_;
    lock.unlock();
    work_later(later, owner);
  });
}

/// Runs what is queued on this thread until nothing is left, or no instance.
void Batcher::work(Lock& lock) {
  while (!queue_.empty() && !free_.empty()) run(lock, free_.back(), fitting(queue_.front()));
}

/// Those whose batch is full, and an idle one for a request that is in nobody's.
void Batcher::wake_gatherers() {
  for (const auto& one : gatherers_) {
    if (one->leader && is_full(one->leader)) one->wake.notify_one();
  }
  if (!next_leader()) return;
  const auto idle = std::find_if(gatherers_.begin(), gatherers_.end(),
                                 [](const auto& one) { return !one->leader && !one->running; });
  if (idle != gatherers_.end()) (*idle)->wake.notify_one();
}

/// The first request that is in no gatherer's batch; null when there is none.
RequestPtr Batcher::next_leader() const {
  Batch planned;
  for (const auto& one : gatherers_) {
    if (!one->leader) continue;
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

/// The thread of one instance.
void Batcher::gather(int instance, const std::shared_ptr<bool>& gone) {
  Gatherer& self = *gatherers_[static_cast<size_t>(instance)];
  Lock lock(mutex_);
  while (!stopped_) {
    RequestPtr leader = self.leader = next_leader();
    if (!leader) {
      self.wake.wait(lock);
      continue;
    }
    self.wake.wait_until(lock, leader->arrived + limits_.max_delay,
                         [&] { return self.leader != leader || is_full(leader); });
    if (self.leader != leader) continue;
    // With the last answer the batcher may have no owner but these.
    std::shared_ptr<void> owner = leader->owner;
    self.leader = nullptr;
    self.running = true;
    run(lock, instance, fitting(leader));
    self.running = false;
    lock.unlock();
    leader.reset();
    owner.reset();
    if (*gone) return;
    lock.lock();
  }
}

void Batcher::run(Lock& lock, int instance, const Batch& batch) {
  const Clock::time_point now = Clock::now();
  std::erase(free_, instance);
  for (const RequestPtr& one : batch) {
    std::erase(queue_, one);
    running_.push_back(one);
    release_gatherer(one);
    one->state_ = Request::State::kRunning;
    one->started = now;
  }
  lock.unlock();
  std::optional<Error> failure;
  try {
    if (gathers()) {
      run_at_home(*gatherers_[static_cast<size_t>(instance)], instance, batch);
    } else {
      run_(instance, batch);
    }
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

void Batcher::run_at_home(Gatherer& self, int instance, const Batch& batch) {
  self.home.go();
  const Clock::time_point start = Clock::now();
  run_(instance, batch);
  if (Clock::now() - start >= kWorthAMove) {
    self.home.remember();
  } else {
    self.home.forget();
  }
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
  for (const auto& one : gatherers_) {
    if (one->leader != leader) continue;
    one->leader = nullptr;
    one->wake.notify_one();
  }
}

void Batcher::watch_deadline(const RequestPtr& request) {
  if (request->deadline >= next_deadline_) return;
  next_deadline_ = request->deadline;
  if (watch_.thread.joinable()) {
    deadline_changed_.notify_one();
  } else {
    watch_.thread = std::thread([this, gone = watch_.gone] { watch_deadlines(gone); });
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
