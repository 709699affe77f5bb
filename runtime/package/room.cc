// The free dim of plan sets that says how much room there is for what nothing bounds.
#include <algorithm>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/shape_buckets.h"
#include "runtime/package/package_reader.h"
#include "runtime/package/plan_set.h"

namespace tensormill::package {

std::optional<size_t> room_dim(const PlanSet& set) {
  const auto has_it = [](const DimShape& shape) {
    return std::find(shape.begin(), shape.end(), Dim(std::string(kLoopRoom))) != shape.end();
  };
  if (set.free_dims.empty() || set.free_dims.back() != kLoopRoom ||
      std::any_of(set.input_shapes.begin(), set.input_shapes.end(), has_it))
    return std::nullopt;
  return set.free_dims.size() - 1;
}

namespace {

/// As much or up to an eighth more: so that few rooms of many sizes get plans of their own.
int64_t in_steps(int64_t wanted) {
  constexpr int64_t kSteps = 8;
  int64_t step = 1;
  while (step * 2 * kSteps <= wanted) step *= 2;
  return (wanted + step - 1) / step * step;
}

}  // namespace

std::optional<std::vector<int64_t>> with_more_room(const PlanSet& set, std::vector<int64_t> dims,
                                                   int64_t room, int64_t wanted) {
  constexpr int64_t kLeastRoom = 64, kGrowth = 4;
  int64_t& own = dims[*room_dim(set)];
  std::optional<int64_t> more;
  for (const PlanVariant& variant : set.variants) {
    const int64_t candidate = variant.dims.back();
    own = candidate;
    // Where half of it would be left empty, a plan that fits is faster.
    const bool is_close = wanted <= room || !set.generic || candidate / 2 <= wanted;
    if (candidate > room && candidate >= wanted && is_close && variant.dims == dims &&
        (!more || candidate < *more))
      more = candidate;
  }
  if (!more && set.generic) {
    const int64_t next = wanted > room ? in_steps(wanted) : std::max(kLeastRoom, room * kGrowth);
    if (next <= kMaxFreeDim) more = next;
  }
  if (!more) return std::nullopt;
  own = *more;
  return dims;
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

std::optional<std::vector<int64_t>> LoadedPackage::first_room(const std::vector<int64_t>& dims) const {
  constexpr int64_t kManyBytes = int64_t{1} << 28, kShrinking = 4;
  const PlanSet& plans = package_->plans();
  const std::optional<size_t> room = room_dim(plans);
  if (!room) return std::nullopt;
  std::optional<std::vector<int64_t>> first = with_more_room(plans, dims, 0, 0);
  if (!first || !plans.generic) return first;
  std::optional<int64_t> bytes = arena_bytes(*first);
  while (bytes && *bytes > kManyBytes && (*first)[*room] >= kShrinking) {
    std::vector<int64_t> smaller = *first;
    smaller[*room] /= kShrinking;
    const std::optional<int64_t> less = arena_bytes(smaller);
    // The rest is what the room does not decide about.
    if (!less || *less > *bytes / 2) break;
    first = std::move(smaller);
    bytes = less;
  }
  return first;
}

}  // namespace tensormill::package
