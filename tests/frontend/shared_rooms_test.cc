/// Which numbers that nothing bounds have a room of their own. The models are extents made of rooms.
#include "compiler/frontend/onnx/shared_rooms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "compiler/ops/ops.h"

namespace tensormill::frontend::onnx {
namespace {

using testing::ElementsAre;
using Extents = std::vector<int64_t>;

constexpr int64_t kMostElements = int64_t{1} << 40;

/// The rooms of a model whose values are as long as `lengths` makes them of the rooms of so many numbers.
SharedRooms shared(size_t numbers, const std::function<Extents(const Extents&)>& lengths) {
  return share_rooms([&](const std::vector<Room>& rooms, size_t* met) -> std::optional<ir::Graph> {
    *met = numbers;
    Extents extents;
    for (size_t i = 0; i < numbers; ++i) extents.push_back(rooms[std::min(i, rooms.size() - 1)].extent);
    ir::Graph graph(ops::standard_ops());
    for (const int64_t length : lengths(extents)) {
      if (length < 0 || length > kMostElements) return std::nullopt;
      graph.add_input("x" + std::to_string(graph.inputs().size()), {DType::kFloat32, {length}});
    }
    return graph;
  });
}

std::vector<size_t> rooms_of(size_t numbers, const std::function<Extents(const Extents&)>& lengths) {
  return shared(numbers, lengths).room_of;
}

TEST(SharedRooms, NumbersOfTheirOwnHaveRooms) {
  EXPECT_THAT(rooms_of(3, [](const Extents& n) { return n; }), ElementsAre(0, 1, 2));
  EXPECT_THAT(rooms_of(2,
                       [](const Extents& n) {
                         return Extents{n[0], 2 * n[1] + 3, n[0] + n[1], n[0] * n[1]};
                       }),
              ElementsAre(0, 1));
  EXPECT_THAT(rooms_of(1, [](const Extents& n) { return n; }), ElementsAre(0));
  EXPECT_EQ(shared(9, [](const Extents& n) { return n; }).count, 8u);
  EXPECT_EQ(shared(9, [](const Extents& n) { return n; }).room_of[8], 7u);
}

TEST(SharedRooms, WhatChangesTheGraphAlikeIsOne) {
  EXPECT_THAT(rooms_of(3,
                       [](const Extents& n) {
                         return Extents{n[0] + n[1] + 2, n[2]};
                       }),
              ElementsAre(0, 0, 1));
  EXPECT_THAT(rooms_of(2, [](const Extents& n) { return Extents{n[0] * n[1]}; }), ElementsAre(0, 0));
  EXPECT_THAT(rooms_of(3,
                       [](const Extents& n) {
                         return Extents{std::max({n[0], n[1], n[2]})};
                       }),
              ElementsAre(0, 0, 0));
}

TEST(SharedRooms, NumbersThatMeetHaveTheSame) {
  EXPECT_THAT(rooms_of(3,
                       [](const Extents& n) {
                         return Extents{n[0], n[1], n[2], std::max(n[0], n[2])};
                       }),
              ElementsAre(0, 1, 0));
  EXPECT_THAT(rooms_of(2,
                       [](const Extents& n) {
                         return Extents{n[0], n[1], std::min(n[0], n[1])};
                       }),
              ElementsAre(0, 0));
  // Where they differ a node is added, or the model is not taken.
  EXPECT_THAT(rooms_of(3,
                       [](const Extents& n) {
                         return n[0] == n[1] ? n : Extents{n[0], n[1], n[2], 1};
                       }),
              ElementsAre(0, 0, 1));
  EXPECT_THAT(rooms_of(3, [](const Extents& n) { return n[1] == n[2] ? n : Extents{-1}; }),
              ElementsAre(0, 1, 1));
}

TEST(SharedRooms, NumbersOfWhichAQuotientIsNoSumHaveTheSame) {
  for (const int64_t divisor : {2, 3, 4}) {
    for (int64_t more = 0; more < divisor; ++more) {
      EXPECT_THAT(rooms_of(2,
                           [&](const Extents& n) {
                             return Extents{n[0], n[1], (n[0] + n[1] + more) / divisor};
                           }),
                  ElementsAre(0, 0));
      EXPECT_THAT(
          rooms_of(
              2,
              [&](const Extents& n) {
                return Extents{n[0] / divisor, n[1], ((n[0] + more) / divisor + 1) * n[1], n[0] * n[1] + 5};
              }),
          ElementsAre(0, 1));
    }
  }
}

TEST(SharedRooms, WhatMeetsMayBeSeenWhenOthersHaveMet) {
  EXPECT_THAT(rooms_of(3,
                       [](const Extents& n) {
                         Extents lengths{n[0], n[1], n[2], std::max(n[0], n[1])};
                         if (n[0] != n[2]) lengths.push_back(1);
                         return lengths;
                       }),
              ElementsAre(0, 0, 0));
}

TEST(SharedRooms, ManyThatHaveNothingToDoWithEachOtherAreFewImports) {
  size_t imports = 0;
  const auto apart = [&](const Extents& n) {
    ++imports;
    return n;
  };
  EXPECT_EQ(shared(16, apart).count, 8u);
  EXPECT_LT(imports, 110u);
  // Two that meet are found among them.
  const std::vector<size_t> rooms = rooms_of(16, [&](const Extents& n) {
    Extents lengths = apart(n);
    lengths.push_back(std::max(n[2], n[13]));
    return lengths;
  });
  EXPECT_EQ(rooms[13], rooms[2]);
  EXPECT_NE(rooms[12], rooms[2]);
  EXPECT_LT(imports, 250u);
}

TEST(SharedRooms, WhatChangesNothingHasNone) {
  EXPECT_THAT(rooms_of(3, [](const Extents& n) { return Extents{n[1], n[2]}; }), ElementsAre(0, 0, 1));
  EXPECT_EQ(shared(2, [](const Extents&) { return Extents{4}; }).count, 1u);
}

TEST(SharedRooms, BeginSmallWhereTheirProductIsLarge) {
  EXPECT_EQ(shared(2, [](const Extents& n) { return n; }).first, 64);
  const auto box = [](int64_t others) {
    return [others](const Extents& n) {
      Extents lengths = n;
      lengths.push_back(others);
      for (const int64_t each : n) lengths.back() *= each;
      return lengths;
    };
  };
  EXPECT_EQ(shared(2, box(1)).first, 64);
  EXPECT_EQ(shared(4, box(1)).first, 16);
  EXPECT_EQ(shared(5, box(1)).first, 8);
  EXPECT_EQ(shared(6, box(1000)).first, 4);
  // Whatever else is large.
  EXPECT_EQ(shared(2, [](const Extents& n) { return Extents{n[0], n[1], 1 << 22}; }).first, 64);
}

TEST(SharedRooms, OfAModelThatIsNotTakenThereIsOne) {
  const SharedRooms rooms = shared(3, [](const Extents&) { return Extents{-1}; });
  EXPECT_EQ(rooms.count, 1u);
  EXPECT_THAT(rooms.at({7}), testing::SizeIs(1));
}

}  // namespace
}  // namespace tensormill::frontend::onnx
