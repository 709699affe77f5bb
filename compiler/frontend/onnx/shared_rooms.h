/// Which of the numbers that nothing bounds (rooms.h) have a room of their own in a package.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/frontend/onnx/rooms.h"
#include "compiler/ir/graph.h"

namespace tensormill::frontend::onnx {

struct SharedRooms {
  std::vector<size_t> room_of = {0};  ///< by number; those behind the last are as the last
  size_t count = 1;
  int64_t first = 64;  ///< extent with which runs may begin

  /// The rooms of an import, for the extents of each.
  std::vector<Room> at(const std::vector<int64_t>& extents) const;
};

/// The model as a sample, for rooms of its numbers; sets how many there are. Nothing when it does not take
/// them.
using ImportWithRooms = std::function<std::optional<ir::Graph>(const std::vector<Room>&, size_t* numbers)>;

/// Numbers share a room that change the graph alike, as the ends of one axis do, or of which something is no
/// sum or product: the larger of two where what is that long is added, the quotient of a sum. That would be
/// no formula of two extents. The first kMaxRooms have rooms; what changes nothing has that of the first.
SharedRooms share_rooms(const ImportWithRooms& import);

}  // namespace tensormill::frontend::onnx
