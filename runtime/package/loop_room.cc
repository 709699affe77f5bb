// The free dim of plan sets that says for how many iterations of a loop there is room.
#include <algorithm>

#include "runtime/base/shape_buckets.h"
#include "runtime/package/plan_set.h"

namespace tensormill::package {

std::optional<size_t> loop_room_dim(const PlanSet& set) {
  const auto has_it = [](const DimShape& shape) {
    return std::find(shape.begin(), shape.end(), Dim(std::string(kLoopRoom))) != shape.end();
  };
  if (set.free_dims.empty() || set.free_dims.back() != kLoopRoom ||
      std::any_of(set.input_shapes.begin(), set.input_shapes.end(), has_it))
    return std::nullopt;
  return set.free_dims.size() - 1;
}

std::optional<std::vector<int64_t>> with_more_room(const PlanSet& set, std::vector<int64_t> dims,
                                                   int64_t room) {
  constexpr int64_t kLeastRoom = 64, kGrowth = 4;
  int64_t& own = dims[*loop_room_dim(set)];
  std::optional<int64_t> more;
  for (const PlanVariant& variant : set.variants) {
    const int64_t candidate = variant.dims.back();
    own = candidate;
    if (candidate > room && variant.dims == dims && (!more || candidate < *more)) more = candidate;
  }
  if (!more && set.generic && room < kMaxFreeDim / kGrowth) more = std::max(kLeastRoom, room * kGrowth);
  if (!more) return std::nullopt;
  own = *more;
  return dims;
}

}  // namespace tensormill::package
