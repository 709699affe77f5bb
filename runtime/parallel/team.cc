#include "runtime/parallel/team.h"

#include <algorithm>
#include <limits>
#include <thread>

namespace tensormill::parallel {

namespace {

/// More tasks than this share tickets.
constexpr int64_t kMaxTickets = 1 << 15;
/// Polls before a worker takes tickets of others: reading theirs takes the line away from them.
constexpr int kPatience = 100;
/// Polls before a worker lets other threads run: some tenths of a millisecond.
constexpr int kSpins = 25000;
constexpr int64_t kNoTicket = -1;
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

struct Tickets {
  uint32_t epoch;
  int64_t next, end;
};

Tickets unpack(uint64_t word) {
  return {static_cast<uint32_t>(word >> 32), static_cast<int64_t>(word >> 16 & 0xffff),
          static_cast<int64_t>(word & 0xffff)};
}

uint64_t pack(const Tickets& tickets) {
  return uint64_t{tickets.epoch} << 32 | static_cast<uint64_t>(tickets.next) << 16 |
         static_cast<uint64_t>(tickets.end);
}

}  // namespace

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// What the others seldom touch, and what they poll.
struct alignas(kLinePair) Team::Member {
  std::atomic<uint64_t> tickets{0};                  ///< epoch, next, end: 32, 16, 16 bits
  uint32_t epoch = 0;                                ///< the worker's own
  alignas(kLinePair) std::atomic<uint64_t> done{0};  ///< epoch, count: 32 bits each
};

Team::Team(int workers)
    : workers_(workers),
      members_(std::make_unique<Member[]>(static_cast<size_t>(workers))),
      failing_task_(kNone) {}

Team::~Team() = default;

void Team::begin_session() {
  // The leaseholder's: it misses no loop.
  session_epoch_ = members_[0].epoch;
  failing_task_.store(kNone, std::memory_order_relaxed);
  code_ = 0;
}

void Team::enter(int32_t worker) { members_[static_cast<size_t>(worker)].epoch = session_epoch_; }

int32_t Team::loop(int32_t worker, const Loop& loop) {
  Member& self = members_[static_cast<size_t>(worker)];
  const int64_t chunk = loop.tasks / kMaxTickets + 1;
  const Deal deal{loop, ++self.epoch, chunk, (loop.tasks + chunk - 1) / chunk};
  int64_t count = 0;
  const auto report = [&] {
    self.done.store(uint64_t{deal.epoch} << 32 | static_cast<uint64_t>(count), std::memory_order_release);
  };
  for (int64_t ticket = first_ticket(deal, worker); ticket != kNoTicket; ticket = take(self, deal.epoch)) {
    run(deal, ticket, worker);
    ++count;
  }
  if (count != 0) report();
  for (int spins = 0; !is_over(deal);) {
    const int64_t ticket = spins >= kPatience ? take_from_others(deal, worker) : kNoTicket;
    if (ticket != kNoTicket) {
      run(deal, ticket, worker);
      ++count;
      report();
    } else if (++spins < kSpins) {
      pause_briefly();
    } else {
      std::this_thread::yield();
    }
  }
  if (failing_task_.load(std::memory_order_relaxed) == kNone) return 0;
  // Whoever is late may see that a later loop has failed, but its code is final only when that loop is over.
  const std::lock_guard lock(mutex_);
  return failing_epoch_ == deal.epoch ? code_ : 0;
}

Team::Share Team::share_of(const Deal& deal, int32_t worker) const {
  const int64_t each = deal.tickets / workers_, more = deal.tickets % workers_;
  const int64_t begin = worker * each + std::min<int64_t>(worker, more);
  return {begin, begin + each + (worker < more ? 1 : 0)};
}

/// Puts out the worker's tickets, the first one taken, unless another worker has done it in the meantime.
int64_t Team::first_ticket(const Deal& deal, int32_t worker) {
  Member& self = members_[static_cast<size_t>(worker)];
  const Share share = share_of(deal, worker);
  uint64_t word = self.tickets.load(std::memory_order_relaxed);
  while (share.begin < share.end && unpack(word).epoch < deal.epoch) {
    const uint64_t dealt = pack({deal.epoch, share.begin + 1, share.end});
    if (self.tickets.compare_exchange_weak(word, dealt, std::memory_order_acq_rel)) return share.begin;
  }
  return take(self, deal.epoch);
}

int64_t Team::take(Member& member, uint32_t epoch) {
  uint64_t word = member.tickets.load(std::memory_order_relaxed);
  while (true) {
    const Tickets tickets = unpack(word);
    if (tickets.epoch != epoch || tickets.next >= tickets.end) return kNoTicket;
    const uint64_t rest = pack({epoch, tickets.next + 1, tickets.end});
    if (member.tickets.compare_exchange_weak(word, rest, std::memory_order_acq_rel)) return tickets.next;
  }
}

/// Puts out the tickets of workers that have not come yet, too.
int64_t Team::take_from_others(const Deal& deal, int32_t worker) {
  for (int32_t i = 1; i < workers_; ++i) {
    const int32_t other = (worker + i) % workers_;
    Member& member = members_[static_cast<size_t>(other)];
    const Share share = share_of(deal, other);
    uint64_t word = member.tickets.load(std::memory_order_relaxed);
    while (share.begin < share.end && unpack(word).epoch < deal.epoch) {
      const uint64_t dealt = pack({deal.epoch, share.begin, share.end});
      if (member.tickets.compare_exchange_weak(word, dealt, std::memory_order_acq_rel)) break;
    }
    if (const int64_t ticket = take(member, deal.epoch); ticket != kNoTicket) return ticket;
  }
  return kNoTicket;
}

bool Team::is_over(const Deal& deal) const {
  int64_t count = 0;
  for (int i = 0; i < workers_; ++i) {
    const uint64_t word = members_[static_cast<size_t>(i)].done.load(std::memory_order_acquire);
    const uint32_t epoch = static_cast<uint32_t>(word >> 32);
    if (epoch > deal.epoch) return true;  // whoever goes on has seen its end
    if (epoch == deal.epoch) count += static_cast<int64_t>(word & 0xffffffff);
  }
  return count == deal.tickets;
}

void Team::run(const Deal& deal, int64_t ticket, int32_t worker) {
  const Loop& loop = deal.loop;
  const int64_t end = std::min(loop.tasks, (ticket + 1) * deal.chunk);
  for (int64_t task = ticket * deal.chunk; task < end; ++task) {
    if (task > failing_task_.load(std::memory_order_relaxed)) return;
    const bool cancelled = loop.cancel != nullptr && loop.cancel->cancelled();
    const int32_t code = cancelled ? loop.cancel_code : loop.function(loop.context, task, worker);
    if (code != 0) fail(deal.epoch, task, code);
  }
}

void Team::fail(uint32_t epoch, int64_t task, int32_t code) {
  const std::lock_guard lock(mutex_);
  if (task >= failing_task_.load(std::memory_order_relaxed)) return;
  failing_task_.store(task, std::memory_order_relaxed);
  failing_epoch_ = epoch;
  code_ = code;
}

}  // namespace tensormill::parallel
