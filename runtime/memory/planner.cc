#include "runtime/memory/planner.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/tensor.h"

namespace tensormill::memory {

namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 62;

[[noreturn]] void throw_too_large(int64_t a, int64_t b, const char* operation) {
  throw Error(ErrorCode::kMemoryBudget, std::to_string(a) + operation + std::to_string(b) +
                                            " bytes is more than " + std::to_string(kMaxBytes));
}

/// Requests that share storage, placed as one.
struct Group {
  int64_t size = 0;
  int64_t first = 0;
  int64_t last = 0;
  int32_t lowest = 0;  ///< smallest index of a request in it
  int64_t offset = 0;
  int64_t joined = -1;  ///< step of the last reuse: one step may hand the bytes on once
};

class GroupSet {
public:
  explicit GroupSet(const std::vector<BlockRequest>& requests) : parent_(requests.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (size_t i = 0; i < requests.size(); ++i) {
      const BlockRequest& request = requests[i];
      TM_CHECK(request.bytes >= 0 && request.first <= request.last, "block request " + std::to_string(i));
      groups_.push_back(
          {padded_size(request.bytes), request.first, request.last, static_cast<int32_t>(i), 0, -1});
    }
  }

  int32_t find(int32_t index) {
    while (parent_[at(index)] != index) {
      parent_[at(index)] = parent_[at(parent_[at(index)])];
      index = parent_[at(index)];
    }
    return index;
  }

  /// Joins when the lives touch in exactly one step and the target fits.
  void join(const ReuseHint& hint) {
    const int32_t source = find(hint.source);
    const int32_t target = find(hint.target);
    if (source == target) return;
    Group& into = groups_[at(source)];
    const Group& from = groups_[at(target)];
    if (into.last != from.first || from.size > into.size || into.joined == from.first) return;
    into.joined = from.first;
    into.last = from.last;
    into.lowest = std::min(into.lowest, from.lowest);
    parent_[at(target)] = source;
  }

  std::vector<Group*> roots() {
    std::vector<Group*> result;
    for (size_t i = 0; i < parent_.size(); ++i) {
      if (parent_[i] == static_cast<int32_t>(i)) result.push_back(&groups_[i]);
    }
    return result;
  }

  int64_t offset(int32_t index) { return groups_[at(find(index))].offset; }

private:
  static size_t at(int32_t index) { return static_cast<size_t>(index); }

  std::vector<int32_t> parent_;
  std::vector<Group> groups_;
};

/// The smallest gap between placed blocks that live at the same time, or the end of the last.
int64_t best_offset(const Group& group, const std::vector<PlacedBlock>& placed) {
  int64_t best = -1;
  int64_t best_gap = kMaxBytes;
  int64_t end = 0;
  for (const PlacedBlock& other : placed) {
    if (other.last < group.first || group.last < other.first) continue;
    const int64_t gap = other.offset - end;
    if (gap >= group.size && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, other.offset + other.bytes);
  }
  return best >= 0 ? best : end;
}

int64_t live_peak(const std::vector<Group*>& groups) {
  std::map<int64_t, int64_t> change;
  for (const Group* group : groups) {
    change[group->first] += group->size;
    change[group->last + 1] -= group->size;
  }
  int64_t live = 0;
  int64_t peak = 0;
  for (const auto& [step, delta] : change) {
    live += delta;
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace

int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum) || sum > kMaxBytes) throw_too_large(a, b, " + ");
  return sum;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > kMaxBytes) throw_too_large(a, b, " × ");
  return product;
}

int64_t padded_size(int64_t bytes) {
  constexpr int64_t kAlign = kTensorAlignment;
  const int64_t padded = checked_add(bytes, static_cast<int64_t>(kTensorPadding) + kAlign - 1);
  return padded / kAlign * kAlign;
}

BlockPlan plan_blocks(const std::vector<BlockRequest>& requests, const std::vector<ReuseHint>& hints,
                      std::span<const PlacedBlock> taken) {
  GroupSet groups(requests);
  for (const ReuseHint& hint : hints) groups.join(hint);
  std::vector<Group*> order = groups.roots();
  BlockPlan plan;
  int64_t sum = 0;
  for (const Group* group : order) sum = checked_add(sum, group->size);
  plan.live_peak_bytes = live_peak(order);
  std::sort(order.begin(), order.end(), [](const Group* a, const Group* b) {
    return a->size != b->size ? a->size > b->size : a->lowest < b->lowest;
  });
  std::vector<PlacedBlock> placed(taken.begin(), taken.end());  // by offset
  const auto by_offset = [](const PlacedBlock& a, const PlacedBlock& b) { return a.offset < b.offset; };
  for (Group* group : order) {
    group->offset = best_offset(*group, placed);
    plan.total_bytes = std::max(plan.total_bytes, checked_add(group->offset, group->size));
    const PlacedBlock block{group->offset, group->size, group->first, group->last};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), block, by_offset), block);
    plan.placed.push_back(block);
  }
  std::sort(plan.placed.begin(), plan.placed.end(), by_offset);
  for (size_t i = 0; i < requests.size(); ++i) {
    plan.offsets.push_back(groups.offset(static_cast<int32_t>(i)));
  }
  return plan;
}

}  // namespace tensormill::memory
