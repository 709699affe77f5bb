#include "runtime/exec/loop_runner.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/base/error.h"

namespace tensormill::exec {

LoopRunner::LoopRunner(const package::ExecPlan& plan, package::Loop loop, const AddressOf& address,
                       std::byte* staged)
    : loop_(std::move(loop)) {
  const auto bytes_of = [&](int32_t id) {
    return static_cast<size_t>(plan.buffers[static_cast<size_t>(id)].bytes);
  };
  const auto at = [&](int32_t id) { return static_cast<std::byte*>(address(id)); };
  const auto copy = [&](int32_t from, int32_t to) { return Copy{at(from), at(to), bytes_of(to)}; };
  if (loop_.max_trips >= 0) max_trips_ = static_cast<const int64_t*>(address(loop_.max_trips));
  if (loop_.first_condition >= 0)
    first_condition_ = static_cast<const uint8_t*>(address(loop_.first_condition));
  if (loop_.next_condition >= 0) next_condition_ = static_cast<const uint8_t*>(address(loop_.next_condition));
  iteration_ = static_cast<int64_t*>(address(loop_.iteration));
  trips_ = static_cast<int64_t*>(address(loop_.trips));
  for (size_t i = 0; i < loop_.carried.size(); ++i) {
    enter_.push_back(copy(loop_.initial[i], loop_.carried[i]));
    leave_.push_back(copy(loop_.carried[i], loop_.final[i]));
    Copy next = copy(loop_.next[i], loop_.carried[i]);
    if (package::is_staged(plan, loop_, i)) {
      stage_.push_back({next.from, staged, next.bytes});
      next.from = staged;
      staged += next.bytes;
    }
    next_.push_back(next);
  }
  for (size_t i = 0; i < loop_.rows.size(); ++i)
    rows_.push_back({at(loop_.scanned[i]), at(loop_.rows[i]), bytes_of(loop_.rows[i])});
  for (size_t i = 0; i < loop_.parts.size(); ++i)
    parts_.push_back({at(loop_.stacked[i]), at(loop_.parts[i]), bytes_of(loop_.parts[i])});
  const auto extent_of = [&](int32_t id) { return plan.buffers[static_cast<size_t>(id)].shape[0]; };
  if (!loop_.scanned.empty()) scanned_extent_ = extent_of(loop_.scanned[0]);
  if (!loop_.stacked.empty()) stacked_extent_ = extent_of(loop_.stacked[0]);
}

namespace {

/// Places of a stranger's plan may overlap.
void move_bytes(void* to, const void* from, size_t bytes) {
  if (bytes != 0 && to != from) std::memmove(to, from, bytes);
}

}  // namespace

void LoopRunner::find_limit() {
  limit_ = scanned_extent_;
  if (max_trips_ != nullptr) limit_ = std::min(limit_, *max_trips_);
}

size_t LoopRunner::begin() {
  trip_ = 0;
  find_limit();
  const bool goes_on = first_condition_ == nullptr || *first_condition_ != 0;
  // Before any of them has run for nothing.
  if (goes_on && next_condition_ == nullptr && limit_ > stacked_extent_) refuse_more();
  for (const Copy& copy : enter_) move_bytes(copy.to, copy.from, copy.bytes);
  return next_iteration(goes_on);
}

size_t LoopRunner::end() {
  const bool goes_on = next_condition_ == nullptr || *next_condition_ != 0;
  const auto trip = static_cast<size_t>(trip_);
  for (const Row& part : parts_) move_bytes(part.whole + trip * part.bytes, part.row, part.bytes);
  for (const Copy& copy : stage_) move_bytes(copy.to, copy.from, copy.bytes);
  for (const Copy& copy : next_) move_bytes(copy.to, copy.from, copy.bytes);
  ++trip_;
  return next_iteration(goes_on);
}

void LoopRunner::refuse_more() const {
  throw Error(ErrorCode::kTensorData, "the loop has more than " + std::to_string(stacked_extent_) +
                                          " iterations, for which the plan has places");
}

size_t LoopRunner::next_iteration(bool goes_on) {
  if (!goes_on || trip_ >= limit_) return leave();
  if (trip_ >= stacked_extent_) refuse_more();
  *iteration_ = trip_;
  const auto trip = static_cast<size_t>(trip_);
  for (const Row& row : rows_) move_bytes(row.row, row.whole + trip * row.bytes, row.bytes);
  return loop_.begin + 1;
}

size_t LoopRunner::leave() {
  for (const Copy& copy : leave_) move_bytes(copy.to, copy.from, copy.bytes);
  for (const Row& part : parts_) {
    const size_t done = static_cast<size_t>(trip_) * part.bytes;
    std::fill(part.whole + done, part.whole + static_cast<size_t>(stacked_extent_) * part.bytes,
              std::byte{0});
  }
  *trips_ = trip_;
  return loop_.end + 1;
}

}  // namespace tensormill::exec
