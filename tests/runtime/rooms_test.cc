/// The free dims of plan sets that say how much room there is: which they are and how they grow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "runtime/base/no_room.h"
#include "runtime/base/shape_buckets.h"
#include "runtime/host_ops/registry.h"
#include "runtime/package/plan_set.h"
#include "tests/expect_error.h"

namespace tensormill::package {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

using Dims = std::vector<int64_t>;

PlanSet set_of(std::vector<std::string> free_dims, const std::vector<Dims>& variants, bool is_generic) {
  PlanSet set;
  set.free_dims = std::move(free_dims);
  for (const Dims& dims : variants) set.variants.push_back({dims, {}});
  if (is_generic) set.generic.emplace();
  return set;
}

TEST(Rooms, AreTheLastFreeDimsThatNoInputHas) {
  EXPECT_THAT(room_dims(set_of({"N", "loop_room", "loop_room_2", "loop_room_3"}, {}, true)),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(room_dims(set_of({"loop_room"}, {}, true)), ElementsAre(0));
  EXPECT_THAT(room_dims(set_of({"N"}, {}, true)), IsEmpty());
  EXPECT_THAT(room_dims(set_of({"loop_room", "N"}, {}, true)), IsEmpty());
  EXPECT_THAT(room_dims(set_of({"loop_room_2"}, {}, true)), IsEmpty());
  PlanSet of_input = set_of({"loop_room"}, {}, true);
  of_input.input_shapes = {{Dim(int64_t{2}), Dim(std::string("loop_room"))}};
  EXPECT_THAT(room_dims(of_input), IsEmpty());
}

TEST(Rooms, HaveNames) {
  EXPECT_EQ(room_name(0), "loop_room");
  EXPECT_EQ(room_name(kMaxRooms - 1), "loop_room_8");
  EXPECT_TRUE(is_room_name("loop_room_5"));
  for (const char* other : {"loop_room_1", "loop_room_9", "loop_rooms", "N", ""})
    EXPECT_FALSE(is_room_name(other)) << other;
}

TEST(Rooms, GrowAloneToWhatIsWanted) {
  const PlanSet set =
      set_of({"N", "loop_room", "loop_room_2"}, {{3, 8, 8}, {3, 9, 8}, {3, 64, 64}, {4, 8, 70}}, true);
  // As much or up to an eighth more; four times, where it is not known.
  EXPECT_THAT(with_more_room(set, {3, 8, 8}, {{2, 300}}), Optional(Dims{3, 8, 320}));
  EXPECT_THAT(with_more_room(set, {3, 8, 8}, {{1, 17}, {2, 20}}), Optional(Dims{3, 18, 20}));
  EXPECT_THAT(with_more_room(set, {3, 8, 100}, {{2, 0}}), Optional(Dims{3, 8, 400}));
  // A variant where it fits, of the same other dims.
  EXPECT_THAT(with_more_room(set, {3, 8, 8}, {{1, 9}}), Optional(Dims{3, 9, 8}));
  EXPECT_THAT(with_more_room(set, {3, 8, 8}, {{1, 40}, {2, 50}}), Optional(Dims{3, 64, 64}));
  EXPECT_THAT(with_more_room(set, {4, 8, 8}, {{2, 60}}), Optional(Dims{4, 8, 70}));
  // No room that is named is lacking, or it cannot be as large.
  EXPECT_EQ(with_more_room(set, {3, 8, 8}, {}), std::nullopt);
  EXPECT_EQ(with_more_room(set, {3, 8, 8}, {{2, kMaxFreeDim + 1}}), std::nullopt);
}

TEST(Rooms, GrowToAnyPlanThatHoldsThemWhereThereIsNoGenericOne) {
  const PlanSet set = set_of({"loop_room", "loop_room_2"}, {{3, 3}, {9, 9}}, false);
  EXPECT_THAT(with_more_room(set, {3, 3}, {{0, 4}}), Optional(Dims{9, 9}));
  EXPECT_THAT(with_more_room(set, {3, 3}, {{1, 0}}), Optional(Dims{9, 9}));
  EXPECT_EQ(with_more_room(set, {3, 3}, {{0, 10}}), std::nullopt);
}

TEST(Rooms, AreNamedByTheStepThatLacksThem) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> five = {5};
  const Tensor x = Tensor::from<float>({2, 3}, values), n = Tensor::from<int64_t>({1}, five);
  const std::vector<TensorView> inputs = {{x.dtype(), x.shape(), x.data()}, {n.dtype(), n.shape(), n.data()}};
  std::array<float, 6> taken{};
  int64_t count = 0;
  const std::vector<void*> outputs = {taken.data(), &count};
  const std::vector<size_t> bytes = {sizeof(taken), sizeof(count)};
  const host_ops::HostFunction take_first = host_ops::find_host_op("take_first");
  try {
    take_first({inputs, outputs, bytes, R"({"axis":1,"grows":5})"});
    FAIL() << "there is no room for 5";
  } catch (const NoRoom& error) {
    EXPECT_EQ(error.rooms(), 5u);
    EXPECT_EQ(error.had(), 3);
    EXPECT_EQ(error.wanted(), 5);
  }
  take_first({inputs, outputs, bytes, R"({"axis":1})"});
  EXPECT_EQ(count, 3);
}

TEST(Append, MovesThePartAlone) {
  const std::vector<float> values = {1, 2, 0, 0, 5, 6, 0, 0}, more = {3, 7};
  const Tensor x = Tensor::from<float>({2, 4}, values), part = Tensor::from<float>({2, 1}, more);
  const host_ops::HostFunction append = host_ops::find_host_op("append");
  const auto view = [](const Tensor& tensor) {
    return TensorView{tensor.dtype(), tensor.shape(), tensor.data()};
  };
  const std::map<int64_t, std::vector<float>> expected = {{2, {1, 2, 3, 0, 5, 6, 7, 0}},
                                                          {0, {3, 2, 0, 0, 7, 6, 0, 0}},
                                                          {-5, {3, 2, 0, 0, 7, 6, 0, 0}},
                                                          {3, {1, 2, 0, 3, 5, 6, 0, 7}},
                                                          {4, values},
                                                          {int64_t{1} << 62, values}};
  for (const auto& [first, wanted] : expected) {
    const Tensor n = Tensor::from<int64_t>({1}, std::vector<int64_t>{first});
    Tensor apart(DType::kFloat32, {2, 4}), in_place = Tensor::from<float>({2, 4}, values);
    for (const bool is_in_place : {false, true}) {
      Tensor& target = is_in_place ? in_place : apart;
      const std::vector<TensorView> inputs = {view(is_in_place ? in_place : x), view(n), view(part)};
      const std::vector<void*> outputs = {target.data()};
      const std::vector<size_t> bytes = {target.num_bytes()};
      append({inputs, outputs, bytes, R"({"axis":1})"});
      const std::span<const float> got = target.values<float>();
      EXPECT_EQ(std::vector<float>(got.begin(), got.end()), wanted) << first << " " << is_in_place;
    }
  }
  const Tensor n = Tensor::from<int64_t>({1}, std::vector<int64_t>{0}),
               wide = Tensor::zeros(DType::kFloat32, {3, 1});
  Tensor target(DType::kFloat32, {2, 4});
  const std::vector<TensorView> inputs = {view(x), view(n), view(wide)};
  const std::vector<void*> outputs = {target.data()};
  const std::vector<size_t> bytes = {target.num_bytes()};
  expect_error(ErrorCode::kInvalidPackage, "appended", [&] {
    append({inputs, outputs, bytes, R"({"axis":1})"});
  });
}

}  // namespace
}  // namespace tensormill::package
