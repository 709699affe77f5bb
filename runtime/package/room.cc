// The free dims of plan sets that say how much room there is for what nothing bounds.
#include <algorithm>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/shape_buckets.h"
#include "runtime/package/package_reader.h"
#include "runtime/package/plan_set.h"

namespace tensormill::package {

std::vector<size_t> room_dims(const PlanSet& set) {
  const auto is_of_input = [&](const std::string& name) {
    return std::any_of(set.input_shapes.begin(), set.input_shapes.end(), [&](const DimShape& shape) {
      return std::find(shape.begin(), shape.end(), Dim(name)) != shape.end();
    });
  };
  std::vector<size_t> dims;
  const auto first = std::find(set.free_dims.begin(), set.free_dims.end(), kLoopRoom);
  for (auto dim = first; dim != set.free_dims.end(); ++dim) {
    if (dims.size() >= kMaxRooms || *dim != room_name(dims.size()) || is_of_input(*dim)) return {};
    dims.push_back(static_cast<size_t>(dim - set.free_dims.begin()));
  }
  return dims;
}

namespace {

/// As much or up to an eighth more: so that few rooms of many sizes get plans of their own.
int64_t in_steps(int64_t wanted) {
  constexpr int64_t kSteps = 8;
  int64_t step = 1;
  while (step * 2 * kSteps <= wanted) step *= 2;
  return (wanted + step - 1) / step * step;
}

/// `dims` as the variant has them whose rooms are the least of those that are no less than `least`.
/// `is_close`: where half of one would be left empty there is none, since a plan that fits is faster.
std::optional<std::vector<int64_t>> variant_of(const PlanSet& set, const std::vector<size_t>& rooms,
                                               const std::vector<int64_t>& least, bool is_close) {
  std::optional<std::vector<int64_t>> found;
  for (const PlanVariant& variant : set.variants) {
    std::vector<int64_t> same = variant.dims;
    bool fits = true;
    for (const size_t room : rooms) {
      fits =
          fits && variant.dims[room] >= least[room] && (!is_close || variant.dims[room] / 2 <= least[room]);
      same[room] = least[room];
    }
    if (fits && same == least && (!found || variant.dims < *found)) found = variant.dims;
  }
  return found;
}

constexpr int64_t kLeastRoom = 64;

}  // namespace

std::optional<std::vector<int64_t>> with_more_room(const PlanSet& set, const std::vector<int64_t>& dims,
                                                   const std::vector<RoomWish>& wishes, int64_t growth) {
  std::vector<int64_t> least = dims, more = dims;
  bool is_known = true;
  for (const RoomWish& wish : wishes) {
    const int64_t room = dims[wish.dim];
    is_known = is_known && wish.wanted > room;
    least[wish.dim] = std::max(wish.wanted, room + 1);
    more[wish.dim] = wish.wanted > room ? in_steps(wish.wanted) : std::max(kLeastRoom, room * growth);
  }
  if (wishes.empty()) return std::nullopt;
  if (const auto variant = variant_of(set, room_dims(set), least, is_known && set.generic)) return variant;
  const bool is_past = std::any_of(more.begin(), more.end(), [](int64_t dim) { return dim > kMaxFreeDim; });
  return set.generic && !is_past ? std::optional(more) : std::nullopt;
}

std::optional<int64_t> LoadedPackage::arena_bytes(const std::vector<int64_t>& dims) const {
  try {
    return bind(dims)->memory.arena_bytes;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kMemoryBudget) return std::numeric_limits<int64_t>::max();
    if (error.code() != ErrorCode::kInvalidTensor) throw;
    return std::nullopt;
  }
}

std::vector<int64_t> LoadedPackage::with_less_room(std::vector<int64_t> dims,
                                                   const std::vector<int64_t>& least,
                                                   int64_t most_bytes) const {
  constexpr int64_t kShrinking = 4;
  const PlanSet& plans = package_->plans();
  const std::vector<size_t> rooms = room_dims(plans);
  if (!plans.generic) return dims;
  std::optional<int64_t> bytes = arena_bytes(dims);
  while (bytes && *bytes > most_bytes) {
    std::vector<int64_t> smaller = dims;
    for (size_t i = 0; i < rooms.size(); ++i) {
      int64_t& room = smaller[rooms[i]];
      if (room >= kShrinking) room = std::min(room, std::max(room / kShrinking, least[i]));
    }
    const std::optional<int64_t> less = smaller == dims ? std::nullopt : arena_bytes(smaller);
    // The rest is what the room does not decide about.
    if (!less || *less > *bytes / 2) break;
    dims = std::move(smaller);
    bytes = less;
  }
  return dims;
}

std::optional<std::vector<int64_t>> LoadedPackage::first_room(const std::vector<int64_t>& dims) const {
  // The product of several is much in each run.
  constexpr int64_t kMostOfOne = kManyRoomBytes, kMostOfSeveral = int64_t{1} << 22;
  const PlanSet& plans = package_->plans();
  const std::vector<size_t> rooms = room_dims(plans);
  if (rooms.empty()) return std::nullopt;
  std::vector<int64_t> first = dims;
  for (const size_t room : rooms) first[room] = 1;
  if (const auto variant = variant_of(plans, rooms, first, false)) {
    first = *variant;
  } else if (plans.generic) {
    for (const size_t room : rooms) first[room] = kLeastRoom;
  } else {
    return std::nullopt;
  }
  return with_less_room(std::move(first), std::vector<int64_t>(rooms.size(), 1),
                        rooms.size() > 1 ? kMostOfSeveral : kMostOfOne);
}

}  // namespace tensormill::package
