/// How many children may run side by side: a bound on the sum of their memory limits, and one on the number
/// of those that requests wait for. Requests stand in line, for a bounded time; jobs wait in their own
/// threads. One child of a request and one of a job may always run, whatever their limits, so that neither
/// waits for the other. What measures takes a slot and never waits: it keeps others from running meanwhile
/// (MeasureGate), so they could not make room. A deployment's executor stays for as long as it serves, so
/// nobody could wait for its end: it is taken at once or refused, by what other executors have; the others
/// wait for what executors leave, or run one by one. Thread-safety: all methods from many threads; a Slot may
/// end on any.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>

namespace tensormill::jobs {

struct ChildSlotsOptions {
  uint64_t memory = uint64_t{16} << 30;    ///< of all children together
  int requests = 2;                        ///< children of requests side by side
  int waiting = 8;                         ///< requests in line; past it Error(kUnavailable)
  std::chrono::milliseconds wait{30'000};  ///< of one request; past it Error(kUnavailable)
};

class ChildSlots {
public:
  using Clock = std::chrono::steady_clock;
  enum class Owner { kRequest, kJob, kMeasuring, kExecutor };

  /// Counts as a child while it lives. The slots outlive it.
  class Slot {
  public:
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

  private:
    friend class ChildSlots;
    Slot(ChildSlots& slots, Owner owner, uint64_t memory) : slots_(slots), owner_(owner), memory_(memory) {}
    ChildSlots& slots_;
    const Owner owner_;
    const uint64_t memory_;
  };
  using SlotPtr = std::unique_ptr<Slot>;

  explicit ChildSlots(const ChildSlotsOptions& options) : options_(options) {}

  /// For a child of `memory` bytes at most; 0: it has no limit, and counts as all that there is. Throws
  /// Error(kUnavailable), Error(kCancelled) when `cancelled` stops, Error(kDeadlineExceeded).
  SlotPtr for_request(uint64_t memory, const std::stop_token& cancelled,
                      Clock::time_point deadline = Clock::time_point::max());
  /// Throws Error(kUnavailable) where for_request() would at once.
  void require_room(uint64_t memory);
  /// Null when there is none within `wait`, or when `stop` stops.
  SlotPtr for_job(uint64_t memory, std::chrono::milliseconds wait, const std::stop_token& stop);
  /// At once.
  SlotPtr for_measuring(uint64_t memory);
  /// At once. Throws Error(kMemoryBudget) where executors alone would have more than there is for children.
  SlotPtr for_executor(uint64_t memory);

  int running() const;
  int waiting() const;
  /// Requests that got none.
  uint64_t refusals() const;

private:
  uint64_t weight(uint64_t memory) const { return memory == 0 ? options_.memory : memory; }
  int& running_of(Owner owner) { return running_[static_cast<size_t>(owner)]; }
  uint64_t& memory_of(Owner owner) { return memory_[static_cast<size_t>(owner)]; }
  uint64_t memory() const;
  uint64_t left_beside(uint64_t used) const { return options_.memory - std::min(options_.memory, used); }
  bool fits(Owner owner, uint64_t memory);
  /// Whether a request gets a slot without a place in the line. Throws where there is no place.
  bool is_free_now(uint64_t memory);
  SlotPtr take(Owner owner, uint64_t memory);
  void release(const Slot& slot);
  [[noreturn]] void refuse(const char* why);

  const ChildSlotsOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::array<int, 4> running_{};      ///< by owner
  std::array<uint64_t, 4> memory_{};  ///< of those that run
  std::list<int> line_;               ///< of requests, in order of arrival
  uint64_t refusals_ = 0;
};

}  // namespace tensormill::jobs
