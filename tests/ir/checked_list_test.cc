/// Lists and shapes whose elements are reached within their range alone: by index, by iterator, in place.
#include "compiler/ir/checked_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "compiler/ir/graph.h"
#include "compiler/ops/ops.h"
#include "tests/expect_error.h"

namespace tensormill::ir {
namespace {

/// The action leaves the range, which is said in these words.
template <typename Action>
void expect_outside(const std::string& reason, const Action& action) {
  SCOPED_TRACE(reason);
  try {
    action();
    ADD_FAILURE() << "no error";
  } catch (const OutOfRange& outside) {
    EXPECT_EQ(outside.reason(), reason);
  }
}

TEST(CheckedList, IsReadAndWrittenWithinItsRange) {
  Ints list{1, 2, 3};
  list[1] = 7;
  EXPECT_EQ(list, (std::vector<int64_t>{1, 7, 3}));
  EXPECT_EQ(list.front() + list.back() + list.at(1), 11);
  expect_outside("element 3 of a list of 3", [&] { list[3] = 0; });
  expect_outside("element 4 of a list of 3", [&] { static_cast<void>(list.at(4)); });
  expect_outside("element -1 of a list of 3",
                 [&] { static_cast<void>(list[static_cast<size_t>(int64_t{-1})]); });
  const Ints none;
  expect_outside("element 0 of a list of 0", [&] { static_cast<void>(none.front()); });
  expect_outside("element -1 of a list of 0", [&] { static_cast<void>(none.back()); });
  expect_outside("element -1 of a list of 0", [] { Ints().pop_back(); });
}

TEST(CheckedList, IteratorsStayInside) {
  Ints list{4, 5, 6};
  EXPECT_EQ(*(list.begin() + 2), 6);
  EXPECT_EQ(list.end()[-1], 6);
  EXPECT_EQ(list.end() - list.begin(), 3);
  EXPECT_EQ(*list.rbegin(), 6);
  expect_outside("element 4 of a list of 3", [&] { static_cast<void>(list.begin() + 4); });
  expect_outside("element -1 of a list of 3", [&] { static_cast<void>(list.end() - 4); });
  expect_outside("element 3 of a list of 3", [&] { static_cast<void>(*list.end()); });
  expect_outside("element 0 of a list of 0", [] { static_cast<void>(*Ints().begin()); });
  // What writes past the end stops there.
  const std::vector<int64_t> more(3, 9);
  expect_outside("element 3 of a list of 3", [&] { std::copy(more.begin(), more.end(), list.begin() + 1); });
  EXPECT_EQ(list, (std::vector<int64_t>{4, 9, 9}));
}

TEST(CheckedList, PartsBeginBeforeTheyEnd) {
  const Ints list{1, 2, 3};
  EXPECT_EQ(Ints(list.begin() + 1, list.end()), (Ints{2, 3}));
  EXPECT_EQ(std::accumulate(list.begin(), list.end(), int64_t{0}), 6);
  expect_outside("element 1 of a list of 3", [&] { Ints(list.begin() + 2, list.begin() + 1); });
  Ints made;
  expect_outside("element 0 of a list of 3", [&] { made.insert(made.end(), list.end(), list.begin()); });
  expect_outside("element 0 of a list of 3", [&] { made.assign(list.begin() + 1, list.begin()); });
  EXPECT_TRUE(made.empty());
}

TEST(CheckedList, IsChangedInPlace) {
  Ints list{1, 2};
  EXPECT_EQ(*list.insert(list.begin() + 1, 5), 5);
  list.insert(list.end(), {7, 8});
  list.insert(list.begin(), 2, 0);
  list.erase(list.begin());
  EXPECT_EQ(list, (Ints{0, 1, 5, 2, 7, 8}));
  list.erase(list.begin() + 1, list.end() - 1);
  std::rotate(list.begin(), list.begin() + 1, list.end());
  EXPECT_EQ(list, (Ints{8, 0}));
  expect_outside("element 2 of a list of 2", [&] { list.erase(list.end()); });
}

TEST(CheckedList, ShapesSayTheirRank) {
  const SymShape row{4};
  expect_outside("axis 1 of a shape of rank 1", [&] { static_cast<void>(row[1]); });
  expect_outside("axis 2 of a shape of rank 1", [&] { SymShape(row.begin() + 2, row.end()); });
  expect_outside("axis -1 of a shape of rank 0", [] { static_cast<void>(SymShape().back()); });
  const Ints numbers = row;
  EXPECT_EQ(numbers, (Ints{4}));
  EXPECT_EQ(Shape(row), (Shape{4}));
}

TEST(CheckedList, OutsideIsTheModelsFaultWhereAGraphIsMade) {
  const Ints list;
  expect_error(ErrorCode::kInvalidModel, "element 0 of a list of 0",
               [&] { as_invalid_model([&] { return list.front(); }); });
  expect_error(ErrorCode::kInvalidModel, "a list has not",
               [] { as_invalid_model([] { return std::vector<int>().at(1); }); });
  expect_error(ErrorCode::kInvalidModel, "more elements than there can be", [] {
    as_invalid_model([] { return std::vector<int64_t>(std::vector<int64_t>().max_size() + 1).size(); });
  });
  const Graph graph(ops::standard_ops());
  expect_outside("a value that is not given", [&] { static_cast<void>(graph.value(kAbsent)); });
  expect_outside("value 3 of the graph", [&] { static_cast<void>(graph.value(3)); });
}

}  // namespace
}  // namespace tensormill::ir
