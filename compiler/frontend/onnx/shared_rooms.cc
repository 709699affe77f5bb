#include "compiler/frontend/onnx/shared_rooms.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

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
/// By how much rooms grow to see what depends on them: of most small divisors one or the other has a rest at
/// which the quotient of a sum is not the sum of quotients.
constexpr std::array<int64_t, 2> kGrowths = {23, 13};

/// The graph for a larger room, by growth; nothing where it is not taken.
using Grown = std::array<std::optional<GraphForm>, kGrowths.size()>;

bool are_like(const Grown& grown, const GraphForm& form) {
  return std::all_of(grown.begin(), grown.end(),
                     [&](const auto& each) { return each && each->is_like(form); });
}

bool are_equal(const Grown& grown, const GraphForm& form) {
  return are_like(grown, form) && std::all_of(grown.begin(), grown.end(),
                                              [&](const auto& each) { return each->values == form.values; });
}

/// Whether a number that two rooms make larger is a sum or a product of what each makes: of `base` where both
/// are small, and by growth of where the one, the other and both are larger.
bool is_made_of_two(int64_t base, const std::array<int64_t, 2>& a, const std::array<int64_t, 2>& b,
                    const std::array<int64_t, 2>& both) {
  std::array<int64_t, 2> mixed{};
  bool is_product = true;
  for (size_t g = 0; g < kGrowths.size(); ++g) {
    mixed[g] = both[g] - a[g] - b[g] + base;
    is_product = is_product && mixed[g] * base == (a[g] - base) * (b[g] - base);
  }
  // A sum of products has one that grows as the square.
  const auto square = [](size_t g) { return kGrowths[g] * kGrowths[g]; };
  return is_product || mixed[0] * square(1) == mixed[1] * square(0);
}

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
      if (are_equal(alone_[i], base_)) groups_[i] = kUnused;
    }
    // Those that have one room now may show what meets with them.
    do {
      tell_apart(firsts());
    } while (unite_some());
    return result();
  }

private:
  static constexpr size_t kUnused = kMostNumbers;
  using Numbers = std::vector<size_t>;

  bool find_base() {
    for (const int64_t extent : {8, 64}) {
      size_t numbers = 0;
      small_ = extent;
      const std::optional<ir::Graph> graph = import_(rooms_of({}, kMostNumbers, 0), &numbers);
      if (!graph) continue;
      base_ = form_of(*graph);
      numbers_ = std::min(numbers, kMostNumbers);
      return true;
    }
    return false;
  }

  /// The rooms of `some` larger than the others.
  std::vector<Room> rooms_of(const Numbers& some, size_t count, int64_t growth) const {
    std::vector<Room> rooms;
    for (size_t i = 0; i < count; ++i) {
      const bool is_one = std::find(some.begin(), some.end(), i) != some.end();
      rooms.push_back({is_one ? small_ + growth : small_, uint64_t{1} << i});
    }
    return rooms;
  }

  const Grown& grown(Numbers some) {
    std::sort(some.begin(), some.end());
    const auto known = grown_.find(some);
    return known != grown_.end() ? known->second : grown_.emplace(some, import_grown(some)).first->second;
  }

  Grown import_grown(const Numbers& some) const {
    Grown forms;
    for (size_t g = 0; g < kGrowths.size(); ++g) {
      size_t numbers = 0;
      const std::optional<ir::Graph> graph = import_(rooms_of(some, numbers_, kGrowths[g]), &numbers);
      if (graph) forms[g] = form_of(*graph);
    }
    return forms;
  }

  bool is_first(size_t i) const { return groups_[i] == i; }

  Numbers group(size_t first) const {
    Numbers members;
    for (size_t i = 0; i < numbers_; ++i) {
      if (groups_[i] == first) members.push_back(i);
    }
    return members;
  }

  Numbers firsts() const {
    Numbers all;
    for (size_t i = 0; i < numbers_; ++i) {
      if (is_first(i)) all.push_back(i);
    }
    return all;
  }

  static Numbers joined(Numbers a, const Numbers& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  static std::pair<Numbers, Numbers> halves(const Numbers& all) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    return {Numbers(all.begin(), middle), Numbers(middle, all.end())};
  }

  /// Finds first ones that do not meet, many at once: each pair would be two imports.
  void tell_apart(const Numbers& some) {
    if (some.size() < 2) return;
    const auto [a, b] = halves(some);
    tell_apart(a);
    tell_apart(b);
    tell_apart(a, b);
  }

  void tell_apart(const Numbers& a, const Numbers& b) {
    if (a.size() == 1 && b.size() == 1) return;
    if (change_apart(members(a), members(b))) {
      for (const size_t i : a) {
        for (const size_t k : b) apart_.insert(std::minmax(group(i), group(k)));
      }
      return;
    }
    const auto [first, second] = halves(a.size() < b.size() ? b : a);
    const Numbers& other = a.size() < b.size() ? a : b;
    tell_apart(first, other);
    tell_apart(second, other);
  }

  /// Whether no number depends on both.
  bool change_apart(const Numbers& own, const Numbers& other) {
    const Grown &a = grown(own), &b = grown(other), &both = grown(joined(own, other));
    if (!are_like(both, base_) || !are_like(a, base_) || !are_like(b, base_)) return false;
    for (size_t g = 0; g < kGrowths.size(); ++g) {
      for (size_t i = 0; i < base_.values.size(); ++i) {
        const int64_t base = base_.values[i], of_a = a[g]->values[i], of_b = b[g]->values[i];
        if ((of_a != base && of_b != base) || both[g]->values[i] != of_a + of_b - base) return false;
      }
    }
    return true;
  }

  /// Of all groups.
  Numbers members(const Numbers& some) const {
    Numbers all;
    for (const size_t first : some) all = joined(all, group(first));
    return all;
  }

  bool unite_some() {
    bool any = false;
    for (size_t i = 0; i < numbers_; ++i) {
      for (size_t k = i + 1; k < numbers_; ++k) {
        if (!is_first(i) || !is_first(k) || !(are_alike(i, k) || meet(i, k))) continue;
        std::replace(groups_.begin(), groups_.end(), k, i);
        alone_[i] = grown(group(i));
        any = true;
      }
    }
    return any;
  }

  bool are_alike(size_t a, size_t b) const {
    for (size_t g = 0; g < kGrowths.size(); ++g) {
      const std::optional<GraphForm>&one = alone_[a][g], &other = alone_[b][g];
      if (!one || !other || !one->is_like(*other) || one->values != other->values) return false;
    }
    return true;
  }

  /// Whether a number is no sum or product of what both make.
  bool meet(size_t a, size_t b) {
    const Numbers own = group(a), other = group(b);
    if (apart_.count(std::minmax(own, other)) != 0) return false;
    return are_like(grown(joined(own, other)), base_) && !is_made(own, other);
  }

  /// Whether the model takes both, and each number is a sum or product of what they make.
  bool is_made(const Numbers& own, const Numbers& other) {
    const Grown &a = grown(own), &b = grown(other), &both = grown(joined(own, other));
    if (!are_like(both, base_) || !are_like(a, base_) || !are_like(b, base_)) return false;
    const auto at = [](const Grown& forms, size_t i) {
      return std::array<int64_t, 2>{forms[0]->values[i], forms[1]->values[i]};
    };
    for (size_t i = 0; i < base_.values.size(); ++i) {
      if (!is_made_of_two(base_.values[i], at(a, i), at(b, i), at(both, i))) return false;
    }
    return true;
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
      if (!are_like(alone_[group], base_)) return {};
      const size_t next = std::min(rooms.size(), kMaxRooms - 1);
      shared.room_of.push_back(rooms.emplace(group, next).first->second);
    }
    shared.count = std::clamp<size_t>(rooms.size(), 1, kMaxRooms);
    if (shared.count > 1) shared.first = first_extent(shared);
    return shared;
  }

  /// The largest of a few at which no value has many elements, or many more than at the least, of those that
  /// the model takes.
  int64_t first_extent(const SharedRooms& shared) const {
    constexpr int64_t kManyElements = int64_t{1} << 17;
    constexpr std::array<int64_t, 4> kExtents = {4, 8, 16, 64};
    int64_t taken = 0, most = kManyElements;
    for (const int64_t extent : kExtents) {
      size_t numbers = 0;
      const std::optional<ir::Graph> graph =
          import_(shared.at(std::vector<int64_t>(shared.count, extent)), &numbers);
      if (!graph) continue;
      const int64_t largest = largest_of(*graph);
      if (taken == 0) most = std::max(most, 2 * largest);
      if (largest > most) break;
      taken = extent;
    }
    return taken == 0 ? small_ : taken;
  }

  const ImportWithRooms& import_;
  int64_t small_ = 0;
  size_t numbers_ = 0;
  GraphForm base_;
  std::vector<size_t> groups_;  ///< by number: the first one that has the same room
  std::vector<Grown> alone_;    ///< of first ones: where the room of their group is larger
  std::map<Numbers, Grown> grown_;
  std::set<std::pair<Numbers, Numbers>> apart_;  ///< groups that do not meet
};

}  // namespace

SharedRooms share_rooms(const ImportWithRooms& import) { return Sharing(import).run(); }

}  // namespace tensormill::frontend::onnx
