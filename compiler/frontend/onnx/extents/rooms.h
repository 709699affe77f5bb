/// Numbers that a run works out and nothing bounds: integers that say how large something is, and how often a
/// loop goes round. Each has a room. Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "compiler/ir/graph.h"

namespace tensormill::frontend::onnx {

/// As much as there is room for, and what of: bit i for room i of the package, of a sum or product several.
struct Room {
  ir::SymInt extent = 0;
  uint64_t rooms = 1;
  /// Where it is not empty, the extent is a symbol of that name, and this one's hint.
  std::string symbol = {};
};

/// What a bound is made of, as Room::rooms.
struct RoomSet {
  uint64_t all = 0;
  /// Without those whose numbers a step before has held against them.
  uint64_t unchecked = 0;
  explicit operator bool() const { return all != 0; }
  bool operator==(const RoomSet&) const = default;
  friend RoomSet operator|(RoomSet a, RoomSet b) { return {a.all | b.all, a.unchecked | b.unchecked}; }
};

/// Such numbers of an import, in the order in which it meets them.
class RoomNumbers {
public:
  /// That of an element of a value; of all of its elements kAll. With a new one for what is met first.
  size_t of(ir::ValueId value, int64_t element) { return numbered(of_values_, {value, element}); }
  std::optional<size_t> find(ir::ValueId value, int64_t element) const {
    const auto found = of_values_.find({value, element});
    return found == of_values_.end() ? std::nullopt : std::optional(found->second);
  }
  /// That of the trips of the loop of a node, by its label: the loop of a body that is converted several
  /// times, of an unrolled loop or of a function, has one number, which has to suffice for all of them.
  size_t of_loop(const std::string& label) { return numbered(of_loops_, label); }
  size_t count() const { return of_values_.size() + of_loops_.size(); }
  static constexpr int64_t kAll = -1;

private:
  template <typename Key>
  size_t numbered(std::map<Key, size_t>& numbers, const Key& key) {
    return numbers.emplace(key, count()).first->second;
  }

  std::map<std::pair<ir::ValueId, int64_t>, size_t> of_values_;
  std::map<std::string, size_t> of_loops_;
};

}  // namespace tensormill::frontend::onnx
