/// How the workers of a lease go through parallel loops side by side. Each worker walks the same sequence of
/// loops by itself, so that between two loops there is one exchange of cache lines (who has done how much) in
/// place of two (start, end); a line takes 0.15 µs from core to core.
///
/// A loop's tasks are tickets. Each worker has consecutive ones, so that what it wrote in one loop is what it
/// reads in the next; a worker that waits takes tickets of the others. Tickets carry the number of their loop
/// (epoch): whoever comes late to a loop, or is asleep, finds its tickets taken, and the loop is over for it.
/// A loop is over when the counts of tickets done, which each worker publishes with the epoch, add up.
/// Thread-safety: begin_session and reset are for one thread while no session runs; in a session each worker
/// calls loop with its own number, the same loops in the same order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/parallel/thread_pool.h"

namespace tensormill::parallel {

/// Keeps what two threads write off each other's cache lines, and off those that a core fetches with them.
constexpr size_t kLinePair = 128;

/// Polling without slowing down the sibling hyperthread.
void pause_briefly();

struct Loop {
  int64_t tasks = 0;
  TaskFunction function = nullptr;
  void* context = nullptr;
  const CancelToken* cancel = nullptr;
  int32_t cancel_code = 0;
};

class Team {
public:
  explicit Team(int workers);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  int workers() const { return workers_; }

  /// Forgets a failure, and lets workers that missed loops of the last session start with the others.
  void begin_session();
  /// A worker's first call in a session.
  void enter(int32_t worker);
  /// Runs this worker's part of the loop, returns when all of it is done: the code of the lowest task that
  /// failed (higher ones may be skipped), or 0. After a failure every worker gets its code in this loop, and
  /// no loop may follow in the session.
  int32_t loop(int32_t worker, const Loop& loop);

private:
  struct Member;
  struct Share {
    int64_t begin, end;
  };
  /// A loop with its number and how its tasks are dealt.
  struct Deal {
    const Loop& loop;
    uint32_t epoch;
    int64_t chunk;    ///< tasks of a ticket
    int64_t tickets;  ///< of all workers
  };

  Share share_of(const Deal& deal, int32_t worker) const;
  int64_t first_ticket(const Deal& deal, int32_t worker);
  int64_t take(Member& member, uint32_t epoch);
  int64_t take_from_others(const Deal& deal, int32_t worker);
  bool is_over(const Deal& deal) const;
  void run(const Deal& deal, int64_t ticket, int32_t worker);
  void fail(uint32_t epoch, int64_t task, int32_t code);

  const int workers_;
  std::unique_ptr<Member[]> members_;
  uint32_t session_epoch_ = 0;
  /// Tasks above one that failed are skipped, those below are not, so it is the same one on every run.
  alignas(kLinePair) std::atomic<int64_t> failing_task_;
  std::mutex mutex_;
  uint32_t failing_epoch_ = 0;  ///< code_'s loop
  int32_t code_ = 0;
};

}  // namespace tensormill::parallel
