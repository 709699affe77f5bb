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
/// The name of a free dim that no input has: for how many iterations of a loop there is room, and for how
/// many elements along an axis whose extent data decides, where nothing else bounds the number. Each such
/// number has its own: "loop_room", "loop_room_2" ... up to kMaxRooms, the last free dims. A run that needs
/// more starts again with more.
inline constexpr std::string_view kLoopRoom = "loop_room";
inline constexpr size_t kMaxRooms = 8;
/// Of room `index`, from 0.
std::string room_name(size_t index);
bool is_room_name(std::string_view name);

/// Extents of one bucket: "1,8" or "32..640:32" (first..last:step, both inclusive), or both, ascending.
/// Throws Error(kInvalidArgument) with the text.
std::vector<int64_t> parse_bucket(std::string_view text);
/// "N=1,8;H=32..640:32".
ShapeBuckets parse_shape_buckets(std::string_view text);

}  // namespace tensormill
