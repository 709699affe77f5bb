/// Extents that free dims get kernels of their own for, as requests write them.
/// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tensormill {

/// By the dim's name: ascending extents.
using ShapeBuckets = std::map<std::string, std::vector<int64_t>>;

inline constexpr int64_t kMaxBucketExtents = 64;
/// Extents of one bucket: "1,8" or "32..640:32" (first..last:step, both inclusive), or both, ascending.
/// Throws Error(kInvalidArgument) with the text.
std::vector<int64_t> parse_bucket(std::string_view text);
/// "N=1,8;H=32..640:32".
ShapeBuckets parse_shape_buckets(std::string_view text);

}  // namespace tensormill
