#include "compiler/frontend/onnx/shared_rooms.h"

#include <algorithm>
#include <array>
#include <map>

#include "compiler/frontend/onnx/graph_form.h"
#include "runtime/base/shape_buckets.h"

namespace tensormill::frontend::onnx {

std::vector<Room> SharedRooms::at(const std::vector<int64_t>& extents) const {
  std::vector<Room> rooms;
  for (const size_t room : room_of) rooms.push_back({extents[room], uint64_t{1} << room});
  return rooms;
}

namespace {

/// Numbers that are told apart.
constexpr size_t kMostNumbers = 16;
constexpr int64_t kGrowth = 4;

class Sharing {
public:
  explicit Sharing(const ImportWithRooms& import) : import_(import) {}

  SharedRooms run() {
    if (!find_base() || numbers_ < 2) return {};
    for (size_t i = 0; i < numbers_; ++i) {
      groups_.push_back(i);
      alone_.push_back(grown({i}));
    }
    for (size_t i = 0; i < numbers_; ++i) {
      if (alone_[i] && alone_[i]->values == base_.values) groups_[i] = kUnused;
    }
    for (size_t i = 0; i < numbers_; ++i) {
      for (size_t k = i + 1; k < numbers_; ++k) {
        if (is_first(i) && is_first(k) && (are_alike(i, k) || meet(i, k))) unite(i, k);
      }
    }
    return result();
  }

private:
  static constexpr size_t kUnused = kMostNumbers;
  using Numbers = std::vector<size_t>;

  bool find_base() {
    for (const int64_t extent : {8, 64}) {
      size_t numbers = 0;
      small_ = extent;
      const std::optional<ir::Graph> graph = import_(rooms_of({}, kMostNumbers), &numbers);
      if (!graph) continue;
      base_ = form_of(*graph);
      numbers_ = std::min(numbers, kMostNumbers);
      return true;
    }
    return false;
  }

  /// The rooms of `some` larger than the others.
  std::vector<Room> rooms_of(const Numbers& some, size_t count) const {
    std::vector<Room> rooms;
    for (size_t i = 0; i < count; ++i) {
      const bool is_one = std::find(some.begin(), some.end(), i) != some.end();
      rooms.push_back({is_one ? kGrowth * small_ : small_, uint64_t{1} << i});
    }
    return rooms;
  }

  std::optional<GraphForm> grown(const Numbers& some) const {
    size_t numbers = 0;
    const std::optional<ir::Graph> graph = import_(rooms_of(some, numbers_), &numbers);
    return graph ? std::optional(form_of(*graph)) : std::nullopt;
  }

  bool is_first(size_t i) const { return groups_[i] == i; }

  Numbers group(size_t first) const {
    Numbers members;
    for (size_t i = 0; i < numbers_; ++i) {
      if (groups_[i] == first) members.push_back(i);
    }
    return members;
  }

  void unite(size_t into, size_t other) {
    std::replace(groups_.begin(), groups_.end(), other, into);
    alone_[into] = grown(group(into));
  }

  bool are_alike(size_t a, size_t b) const {
    return alone_[a] && alone_[b] && alone_[a]->is_like(*alone_[b]) && alone_[a]->values == alone_[b]->values;
  }

  /// Whether the larger or the less of both counts somewhere.
  bool meet(size_t a, size_t b) const {
    Numbers members = group(a);
    const Numbers others = group(b);
    members.insert(members.end(), others.begin(), others.end());
    const std::optional<GraphForm> both = grown(members);
    if (!both || !both->is_like(base_)) return false;
    const auto is_like_base = [&](size_t i) { return alone_[i] && alone_[i]->is_like(base_); };
    if (!is_like_base(a) || !is_like_base(b)) return true;
    for (size_t i = 0; i < base_.values.size(); ++i) {
      const int64_t by_a = alone_[a]->values[i] - base_.values[i];
      const int64_t by_b = alone_[b]->values[i] - base_.values[i];
      const int64_t by_both = both->values[i] - base_.values[i];
      // Sums and products grow by no less than by each alone.
      if (by_both < by_a + by_b || (by_a == 0 && by_b == 0 && by_both != 0)) return true;
    }
    return false;
  }

  SharedRooms result() const {
    SharedRooms shared;
    std::map<size_t, size_t> rooms;
    shared.room_of.clear();
    for (const size_t group : groups_) {
      if (group == kUnused) {
        shared.room_of.push_back(0);
        continue;
      }
      if (!alone_[group] || !alone_[group]->is_like(base_)) return {};
      const size_t next = std::min(rooms.size(), kMaxRooms - 1);
      shared.room_of.push_back(rooms.emplace(group, next).first->second);
    }
    shared.count = std::clamp<size_t>(rooms.size(), 1, kMaxRooms);
    if (shared.count > 1) shared.first = first_extent(shared);
    return shared;
  }

  /// The largest of a few at which no value has many elements, of those that the model takes.
  int64_t first_extent(const SharedRooms& shared) const {
    constexpr int64_t kManyElements = int64_t{1} << 20;
    constexpr std::array<int64_t, 4> kExtents = {64, 16, 8, 4};
    int64_t taken = small_;
    for (const int64_t extent : kExtents) {
      size_t numbers = 0;
      const std::optional<ir::Graph> graph =
          import_(shared.at(std::vector<int64_t>(shared.count, extent)), &numbers);
      if (!graph) continue;
      taken = extent;
      if (largest_of(*graph) <= kManyElements) break;
    }
    return taken;
  }

  const ImportWithRooms& import_;
  int64_t small_ = 0;
  size_t numbers_ = 0;
  GraphForm base_;
  std::vector<size_t> groups_;                   ///< by number: the first one that has the same room
  std::vector<std::optional<GraphForm>> alone_;  ///< of first ones, where the room of their group is larger
};

}  // namespace

SharedRooms share_rooms(const ImportWithRooms& import) { return Sharing(import).run(); }

}  // namespace tensormill::frontend::onnx
