// Who waits, who runs together, who leaves.
#include "server/batching/batcher.h"

#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <map>
#include <set>
#include <thread>

namespace tensormill::batching {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Numbered final : Request {
  explicit Numbered(int n) : number(n) {}
  int number;
};

std::shared_ptr<Numbered> numbered(int number, int64_t rows = 1) {
  auto request = std::make_shared<Numbered>(number);
  request->rows = rows;
  return request;
}

using Outcome = std::optional<ErrorCode>;

/// What becomes of `request`: nothing when it has been run.
std::future<Outcome> outcome_of(const RequestPtr& request) {
  const auto answer = std::make_shared<std::promise<Outcome>>();
  request->done = [answer](const std::optional<Error>& error) {
    answer->set_value(error ? Outcome(error->code()) : std::nullopt);
  };
  return answer->get_future();
}

/// Submits on this thread.
Outcome outcome(Batcher& batcher, const RequestPtr& request) {
  auto answer = outcome_of(request);
  try {
    batcher.submit(request);
  } catch (const Error& error) {
    return error.code();
  }
  return answer.get();
}

/// A batcher whose runs wait at a door while it is shut, and are kept.
class Batching : public testing::Test {
protected:
  void make(const Limits& limits) {
    batcher_.emplace(limits, [this](int instance, std::span<const RequestPtr> batch) {
      std::unique_lock lock(mutex_);
      std::vector<int> numbers;
      for (const RequestPtr& one : batch) numbers.push_back(static_cast<Numbered&>(*one).number);
      batches_.push_back(numbers);
      EXPECT_FALSE(busy_[instance]) << "an instance runs one batch at a time";
      busy_[instance] = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return open_; });
      busy_[instance] = false;
      if (on_run) on_run(batch);
      if (on_run_instance) on_run_instance(instance);
    });
  }
  /// Submits on a thread of its own.
  std::future<Outcome> start(const RequestPtr& request) {
    auto answer = outcome_of(request);
    threads_.emplace_back([this, request] { batcher_->submit(request); });
    return answer;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_for_batches(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return batches_.size() >= count; });
  }
  void wait_for_queue(int count) const {
    while (batcher_->waiting() != count) std::this_thread::yield();
  }
  /// Number 0 keeps the only instance busy until open().
  std::future<Outcome> occupy() {
    auto first = start(numbered(0));
    wait_for_batches(1);
    return first;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  std::map<int, bool> busy_;
  std::vector<std::vector<int>> batches_;
  std::function<void(std::span<const RequestPtr>)> on_run;
  std::function<void(int instance)> on_run_instance;
  std::optional<Batcher> batcher_;
  std::vector<std::jthread> threads_;  ///< end before the batcher does
};

using Batches = std::vector<std::vector<int>>;

TEST_F(Batching, WhatWaitsWhileAllIsBusyRunsTogether) {
  make({1, 64, 4, microseconds(0)});
  auto first = occupy();
  std::vector<std::future<Outcome>> others;
  for (int number = 1; number <= 6; ++number) {
    others.push_back(start(numbered(number)));
    wait_for_queue(number);
  }
  open();
  EXPECT_EQ(first.get(), std::nullopt);
  for (auto& other : others) EXPECT_EQ(other.get(), std::nullopt);
  EXPECT_EQ(batches_, (Batches{{0}, {1, 2, 3, 4}, {5, 6}}));
}

TEST_F(Batching, ABatchStartsAsSoonAsItIsFull) {
  make({1, 64, 3, hours(1)});
  open();
  auto a = start(numbered(1, 2));
  wait_for_queue(1);
  EXPECT_EQ(outcome(*batcher_, numbered(2)), std::nullopt) << "does not wait an hour";
  EXPECT_EQ(a.get(), std::nullopt);
  EXPECT_EQ(batches_, (Batches{{1, 2}}));
}

TEST_F(Batching, AfterTheDelayWhatIsThereRuns) {
  make({1, 64, 8, microseconds(1000)});
  open();
  const auto request = numbered(1);
  EXPECT_EQ(outcome(*batcher_, request), std::nullopt);
  EXPECT_GE(request->started - request->arrived, microseconds(1000));
}

TEST_F(Batching, RowsThatDoNotFitAreLeftForTheNextBatch) {
  make({1, 64, 4, microseconds(0)});
  auto first = occupy();
  auto three = start(numbered(3, 3));
  wait_for_queue(1);
  auto two = start(numbered(2, 2));
  wait_for_queue(2);
  auto one = start(numbered(1, 1));
  wait_for_queue(3);
  open();
  for (auto* each : {&first, &three, &two, &one}) EXPECT_EQ(each->get(), std::nullopt);
  EXPECT_EQ(batches_, (Batches{{0}, {3, 1}, {2}}));
}

TEST_F(Batching, PriorityGoesFirstAndArrivalWithinIt) {
  make({1, 64, 1, microseconds(0)});
  auto first = occupy();
  std::vector<std::future<Outcome>> others;
  const int priorities[] = {5, 9, 1, 5};
  for (int i = 0; i < 4; ++i) {
    const auto request = numbered(i + 1);
    request->priority = priorities[i];
    others.push_back(start(request));
    wait_for_queue(i + 1);
  }
  open();
  for (auto& other : others) EXPECT_EQ(other.get(), std::nullopt);
  EXPECT_EQ(first.get(), std::nullopt);
  EXPECT_EQ(batches_, (Batches{{0}, {3}, {1}, {4}, {2}}));
}

TEST_F(Batching, OneThatMustBeAloneIs) {
  make({1, 64, 8, microseconds(0)});
  auto first = occupy();
  const auto alone = numbered(2);
  alone->alone = true;
  auto a = start(numbered(1));
  wait_for_queue(1);
  auto b = start(alone);
  wait_for_queue(2);
  auto c = start(numbered(3));
  wait_for_queue(3);
  open();
  for (auto* each : {&first, &a, &b, &c}) EXPECT_EQ(each->get(), std::nullopt);
  EXPECT_EQ(batches_, (Batches{{0}, {1, 3}, {2}}));
}

TEST_F(Batching, AFullQueueRefusesAtOnce) {
  make({1, 2, 1, microseconds(0)});
  auto first = occupy();
  auto a = start(numbered(1));
  auto b = start(numbered(2));
  wait_for_queue(2);
  EXPECT_EQ(outcome(*batcher_, numbered(3)), ErrorCode::kUnavailable);
  open();
  for (auto* each : {&first, &a, &b}) EXPECT_EQ(each->get(), std::nullopt);
}

TEST_F(Batching, RequestsThatAreBeingMadeCountForTheQueuesLimit) {
  make({1, 2, 1, microseconds(0)});
  const auto unavailable = [&] {
    try {
      batcher_->admit();
    } catch (const Error& error) {
      return error.code() == ErrorCode::kUnavailable;
    }
    return false;
  };
  auto first = occupy();
  auto waits = start(numbered(1));
  wait_for_queue(1);
  auto place = batcher_->admit();
  EXPECT_TRUE(unavailable());
  EXPECT_EQ(outcome(*batcher_, numbered(3)), ErrorCode::kUnavailable) << "the place is somebody's";
  place.reset();
  place = batcher_->admit();
  place.reset();
  auto second = start(numbered(2));
  wait_for_queue(2);
  EXPECT_TRUE(unavailable());
  open();
  for (auto* each : {&first, &waits, &second}) EXPECT_EQ(each->get(), std::nullopt);
}

TEST_F(Batching, ADeadlineEndsTheWaitAndFreesThePlace) {
  make({1, 1, 1, microseconds(0)});
  auto first = occupy();
  const auto late = numbered(1);
  late->deadline = Clock::now() + milliseconds(1);
  EXPECT_EQ(outcome(*batcher_, late), ErrorCode::kDeadlineExceeded);
  auto next = start(numbered(2));
  wait_for_queue(1);
  open();
  EXPECT_EQ(first.get(), std::nullopt);
  EXPECT_EQ(next.get(), std::nullopt);
  EXPECT_EQ(batches_, (Batches{{0}, {2}})) << "what is late is not run";
}

TEST_F(Batching, AClientThatGoesTakesItsRequestAlong) {
  make({1, 64, 1, microseconds(0)});
  auto first = occupy();
  std::stop_source client;
  const auto request = numbered(1);
  request->cancelled = client.get_token();
  auto gone = start(request);
  wait_for_queue(1);
  client.request_stop();
  EXPECT_EQ(gone.get(), ErrorCode::kCancelled);
  EXPECT_EQ(batcher_->waiting(), 0);
  open();
  EXPECT_EQ(first.get(), std::nullopt);
  EXPECT_EQ(batches_, (Batches{{0}}));
}

TEST_F(Batching, ALeaderThatGoesLeavesItsPlaceToTheNext) {
  make({1, 64, 8, hours(1)});
  open();
  std::stop_source client;
  const auto leader = numbered(1);
  leader->cancelled = client.get_token();
  auto gone = start(leader);
  wait_for_queue(1);
  auto other = start(numbered(2, 4));
  wait_for_queue(2);
  client.request_stop();
  EXPECT_EQ(gone.get(), ErrorCode::kCancelled);
  auto last = start(numbered(3, 4));
  EXPECT_EQ(other.get(), std::nullopt);
  EXPECT_EQ(last.get(), std::nullopt);
  EXPECT_EQ(batches_, (Batches{{2, 3}}));
}

TEST_F(Batching, OneLeavesARunningBatchAndTheOthersAreServed) {
  make({1, 64, 2, hours(1)});
  std::stop_source client;
  auto stays = start(numbered(1));
  wait_for_queue(1);
  const auto request = numbered(2);
  request->cancelled = client.get_token();
  auto leaves = start(request);
  wait_for_batches(1);
  client.request_stop();
  EXPECT_EQ(leaves.get(), ErrorCode::kCancelled) << "while the run goes on";
  open();
  EXPECT_EQ(stays.get(), std::nullopt);
}

TEST_F(Batching, EachHasItsOwnFailureAndAThrownOneIsEverybodys) {
  make({1, 64, 2, hours(1)});
  open();
  on_run = [](std::span<const RequestPtr> batch) {
    for (const RequestPtr& one : batch) {
      if (static_cast<Numbered&>(*one).number == 2) one->failure = Error(ErrorCode::kTensorData, "index 9");
    }
  };
  auto a = start(numbered(1));
  wait_for_queue(1);
  EXPECT_EQ(outcome(*batcher_, numbered(2)), ErrorCode::kTensorData);
  EXPECT_EQ(a.get(), std::nullopt);
  on_run = [](std::span<const RequestPtr>) { throw Error(ErrorCode::kMemoryBudget, "too much"); };
  EXPECT_EQ(outcome(*batcher_, numbered(3, 2)), ErrorCode::kMemoryBudget);
  on_run = nullptr;
  EXPECT_EQ(outcome(*batcher_, numbered(4, 2)), std::nullopt) << "the instance is free again";
}

TEST_F(Batching, InstancesWorkAtOnce) {
  make({3, 64, 1, microseconds(0)});
  std::vector<std::future<Outcome>> all;
  for (int number = 0; number < 3; ++number) all.push_back(start(numbered(number)));
  wait_for_batches(3);
  open();
  for (auto& one : all) EXPECT_EQ(one.get(), std::nullopt);
}

/// A thread that does one thing after the other, as an I/O thread does.
class Turns {
public:
  std::function<void(Request::Task)> later() {
    return [this](Request::Task task) { tasks_.push_back(std::move(task)); };
  }
  void run() {
    while (!tasks_.empty()) {
      const Request::Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }

private:
  std::deque<Request::Task> tasks_;
};

TEST_F(Batching, WhatComesInOneTurnOfAThreadRunsTogether) {
  make({2, 64, 4, microseconds(0)});
  open();
  Turns turns;
  std::vector<std::future<Outcome>> all;
  for (int number = 1; number <= 6; ++number) {
    const auto request = numbered(number);
    request->later = turns.later();
    all.push_back(outcome_of(request));
    batcher_->submit(request);
  }
  EXPECT_EQ(batcher_->waiting(), 6) << "submit() has not kept the thread";
  turns.run();
  for (auto& one : all) EXPECT_EQ(one.get(), std::nullopt);
  EXPECT_EQ(batches_, (Batches{{1, 2, 3, 4}, {5, 6}}));
}

TEST_F(Batching, ATurnThatFindsNoInstanceLeavesTheRestToTheOneThatRuns) {
  make({1, 64, 4, microseconds(0)});
  auto first = occupy();
  Turns turns;
  const auto request = numbered(1);
  request->later = turns.later();
  auto answer = outcome_of(request);
  batcher_->submit(request);
  turns.run();
  EXPECT_EQ(batcher_->waiting(), 1);
  open();
  EXPECT_EQ(first.get(), std::nullopt);
  EXPECT_EQ(answer.get(), std::nullopt);
}

/// The batcher goes with the answers that wait for `released`.
void expect_end(std::shared_ptr<Batcher> owner, std::promise<void>& released) {
  const std::weak_ptr<Batcher> weak = owner;
  owner.reset();
  EXPECT_FALSE(weak.expired());
  released.set_value();
  while (!weak.expired()) std::this_thread::yield();
}

TEST(BatcherEnd, TheAnswerToALateRequestMayBeTheLastThatHeldIt) {
  auto owner = std::make_shared<Batcher>(Limits{}, [](int, std::span<const RequestPtr>) {});
  std::promise<void> released;
  {
    const auto request = numbered(1);
    request->owner = owner;
    request->later = [](const Request::Task&) {};
    request->deadline = Clock::now() + milliseconds(1);
    request->done = [let_go = released.get_future().share()](const std::optional<Error>&) { let_go.wait(); };
    owner->submit(request);
  }
  expect_end(std::move(owner), released);
}

TEST(BatcherEnd, TheAnswersOfABatchMayBeTheLastThatHeldIt) {
  auto owner = std::make_shared<Batcher>(Limits{2, 64, 2, hours(1)}, [](int, std::span<const RequestPtr>) {});
  std::promise<void> released;
  const std::shared_future<void> let_go = released.get_future().share();
  for (int number = 1; number <= 2; ++number) {
    const auto request = numbered(number);
    request->owner = owner;
    request->done = [let_go](const std::optional<Error>&) { let_go.wait(); };
    owner->submit(request);
  }
  expect_end(std::move(owner), released);
}

TEST_F(Batching, EachInstanceRunsOnAThreadOfItsOwn) {
  make({2, 64, 2, hours(1)});
  open();
  std::map<int, std::set<std::thread::id>> threads;
  on_run_instance = [&](int instance) { threads[instance].insert(std::this_thread::get_id()); };
  for (int number = 0; number < 40; number += 2) {
    auto one = start(numbered(number));
    wait_for_queue(1);
    EXPECT_EQ(outcome(*batcher_, numbered(number + 1)), std::nullopt);
    EXPECT_EQ(one.get(), std::nullopt);
  }
  for (const auto& [instance, ids] : threads) {
    EXPECT_EQ(ids.size(), 1U) << "instance " << instance;
    EXPECT_EQ(ids.count(std::this_thread::get_id()), 0U) << "not the one that filled the batch";
  }
}

TEST_F(Batching, ManyThreadsLoseNothing) {
  make({2, 1000, 7, microseconds(50)});
  open();
  std::vector<std::future<int>> threads;
  for (int t = 0; t < 8; ++t) {
    threads.push_back(std::async(std::launch::async, [this, t] {
      int served = 0;
      for (int i = 0; i < 200; ++i) {
        const auto request = numbered(t * 1000 + i, 1 + i % 3);
        if (i % 10 == 9) request->deadline = Clock::now();
        const auto code = outcome(*batcher_, request);
        served += !code ? 1 : 0;
        EXPECT_TRUE(!code || *code == ErrorCode::kDeadlineExceeded);
      }
      return served;
    }));
  }
  size_t served = 0;
  for (auto& thread : threads) served += static_cast<size_t>(thread.get());
  size_t ran = 0;
  for (const auto& batch : batches_) ran += batch.size();
  // One whose deadline comes while it runs is not served.
  EXPECT_GE(ran, served);
  EXPECT_GE(served, 8U * 180);
  EXPECT_EQ(batcher_->waiting(), 0);
}

}  // namespace
}  // namespace tensormill::batching
