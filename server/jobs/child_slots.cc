#include "server/jobs/child_slots.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "runtime/base/error.h"

namespace tensormill::jobs {

ChildSlots::Slot::~Slot() { slots_.release(*this); }

uint64_t ChildSlots::memory() const { return std::accumulate(memory_.begin(), memory_.end(), uint64_t{0}); }

bool ChildSlots::fits(Owner owner, uint64_t memory) {
  if (owner == Owner::kRequest && running_of(owner) >= options_.requests) return false;
  return weight(memory) <= left_beside(this->memory()) || running_of(owner) == 0;
}

ChildSlots::SlotPtr ChildSlots::take(Owner owner, uint64_t memory) {
  ++running_of(owner);
  memory_of(owner) += weight(memory);
  return std::unique_ptr<Slot>(new Slot(*this, owner, weight(memory)));
}

void ChildSlots::release(const Slot& slot) {
  {
    const std::lock_guard lock(mutex_);
    --running_of(slot.owner_);
    memory_of(slot.owner_) -= slot.memory_;
  }
  changed_.notify_all();
}

void ChildSlots::refuse(const char* why) {
  ++refusals_;
  throw Error(ErrorCode::kUnavailable,
              std::string(why) + ": children have " + std::to_string(memory()) +
                  " bytes of memory, children.memory is " + std::to_string(options_.memory) + "; " +
                  std::to_string(running_of(Owner::kRequest)) + " of requests run, " +
                  "children.at_once is " + std::to_string(options_.requests));
}

bool ChildSlots::is_free_now(uint64_t memory) {
  if (line_.empty() && fits(Owner::kRequest, memory)) return true;
  if (static_cast<int>(line_.size()) >= options_.waiting)
    refuse("too many requests wait for a child process");
  return false;
}

void ChildSlots::require_room(uint64_t memory) {
  const std::lock_guard lock(mutex_);
  is_free_now(memory);
}

ChildSlots::SlotPtr ChildSlots::for_request(uint64_t memory, const std::stop_token& cancelled,
                                            Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (is_free_now(memory)) return take(Owner::kRequest, memory);
  const auto place = line_.insert(line_.end(), 0);
  const Clock::time_point bound = Clock::now() + options_.wait;
  const bool is_free = changed_.wait_until(lock, cancelled, std::min(bound, deadline), [&] {
    return place == line_.begin() && fits(Owner::kRequest, memory);
  });
  line_.erase(place);
  // Whoever is first now may fit as well.
  changed_.notify_all();
  if (is_free) return take(Owner::kRequest, memory);
  if (cancelled.stop_requested()) throw Error(ErrorCode::kCancelled, "the client has gone");
  if (deadline < bound)
    throw Error(ErrorCode::kDeadlineExceeded, "no child process was free before the deadline");
  refuse("no child process was free in time");
}

ChildSlots::SlotPtr ChildSlots::for_job(uint64_t memory, std::chrono::milliseconds wait,
                                        const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool is_free = changed_.wait_for(lock, stop, wait, [&] { return fits(Owner::kJob, memory); });
  return is_free ? take(Owner::kJob, memory) : nullptr;
}

ChildSlots::SlotPtr ChildSlots::for_measuring(uint64_t memory) {
  const std::lock_guard lock(mutex_);
  return take(Owner::kMeasuring, memory);
}

ChildSlots::SlotPtr ChildSlots::for_executor(uint64_t memory) {
  const std::lock_guard lock(mutex_);
  const uint64_t others = memory_of(Owner::kExecutor);
  if (weight(memory) <= left_beside(others)) return take(Owner::kExecutor, memory);
  throw Error(ErrorCode::kMemoryBudget, "a process of its own takes " + std::to_string(memory) +
                                            " bytes, those of other deployments have " +
                                            std::to_string(others) + ", and children.memory is " +
                                            std::to_string(options_.memory));
}

int ChildSlots::running() const {
  const std::lock_guard lock(mutex_);
  return std::accumulate(running_.begin(), running_.end(), 0);
}

int ChildSlots::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(line_.size());
}

uint64_t ChildSlots::refusals() const {
  const std::lock_guard lock(mutex_);
  return refusals_;
}

}  // namespace tensormill::jobs
