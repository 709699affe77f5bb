/// What nodes ask of free dims, found from where imports end. The nodes are checks of extents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx/dependent_dims.h"

namespace tensormill::frontend::onnx {
namespace {

using Dims = std::vector<int64_t>;

/// Which of a node's checks refuses its operands; empty: none.
using Check = std::function<std::string(const std::vector<Dims>&)>;

struct Node {
  std::function<std::vector<Dims>(const Dims&)> operands;  ///< their extents for values of the free dims
  Check check;
  std::vector<Dims> attributes = {};
};

class Model {
public:
  explicit Model(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}

  /// The dims that follow from others at `dims`; empty where none were found.
  Dims settled(const Dims& dims, Dims anchor = {}, const std::vector<Dims>& taken = {}) {
    anchor.resize(dims.size());
    const StopAt stop_at = [this](const Dims& some) { return stop(some); };
    const std::vector<ir::DependentDim> found = find_dependents(stop_at, anchor, taken);
    return found.empty() ? Dims() : ir::with_dependents(dims, found);
  }

  int imports() const { return imports_; }

private:
  ImportStop stop(const Dims& dims) {
    ++imports_;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const std::vector<Dims> operands = nodes_[i].operands(dims);
      ImportStop stop{static_cast<int64_t>(i), static_cast<int64_t>(i), nodes_[i].check(operands)};
      if (stop.reason.empty()) continue;
      stop.attributes = nodes_[i].attributes;
      for (const Dims& extents : operands) {
        stop.operands.push_back({stop.numbers.size(), extents.size()});
        stop.numbers.insert(stop.numbers.end(), extents.begin(), extents.end());
      }
      return stop;
    }
    return {};
  }

  std::vector<Node> nodes_;
  int imports_ = 0;
};

std::string fits(bool fits, const char* reason = "they do not fit") { return fits ? "" : reason; }

std::string same(const std::vector<Dims>& operands) {
  return fits(std::all_of(operands.begin(), operands.end(),
                          [&](const Dims& each) { return each == operands.front(); }));
}

std::string matmul(const std::vector<Dims>& operands) {
  const Dims &a = operands[0], &b = operands[1];
  return fits(a.back() == b[b.size() - 2] && std::equal(a.begin(), a.end() - 2, b.begin()));
}

/// Operands of free dims alone, as many as each has axes.
std::function<std::vector<Dims>(const Dims&)> in_order(const std::vector<size_t>& ranks) {
  return [ranks](const Dims& dims) {
    std::vector<Dims> operands;
    auto next = dims.begin();
    for (const size_t rank : ranks) {
      operands.emplace_back(next, next + static_cast<std::ptrdiff_t>(rank));
      next += static_cast<std::ptrdiff_t>(rank);
    }
    return operands;
  };
}

TEST(TiedDims, AllAxesOfTwoOperandsAreFoundTogether) {
  Model model({{in_order({3, 3}), same}});
  EXPECT_EQ(model.settled({4, 5, 6, 0, 0, 0}), (Dims{4, 5, 6, 4, 5, 6}));
}

TEST(TiedDims, RowsAndColumnsOfAProductStayFree) {
  Model model({{in_order({4, 4}), matmul}});
  EXPECT_EQ(model.settled({2, 3, 4, 5, 0, 0, 0, 6}), (Dims{2, 3, 4, 5, 2, 3, 5, 6}));
}

TEST(TiedDims, OneExtentOfManyOperands) {
  const auto channels = [](const std::vector<Dims>& operands) {
    return fits(std::all_of(operands.begin() + 1, operands.end(),
                            [&](const Dims& each) { return each[0] == operands[0][1]; }));
  };
  Model model({{in_order({4, 1, 1, 1, 1}), channels}});
  EXPECT_EQ(model.settled({2, 3, 4, 5, 0, 0, 0, 0}), (Dims{2, 3, 4, 5, 3, 3, 3, 3}));
}

TEST(TiedDims, WhatIsAskedForStaysFree) {
  Model model({{in_order({2, 2}), same}});
  EXPECT_EQ(model.settled({0, 0, 7, 8}, {0, 0, 1, 1}), (Dims{7, 8, 7, 8}));
}

TEST(TiedDims, AShapeThatIsAskedForDecidesWhatIsEqual) {
  const auto slopes = [](const std::vector<Dims>& operands) {
    const Dims &x = operands[0], &slope = operands[1];
    return fits(slope[0] == x[2] || slope[0] == x[1]);
  };
  Model model({{in_order({3, 1}), slopes}});
  EXPECT_EQ(model.settled({3, 4, 5, 0}), (Dims{3, 4, 5, 5}));
  EXPECT_EQ(model.settled({3, 4, 5, 0}, {3, 4, 5, 4}, {{3, 4, 5, 4}}), (Dims{3, 4, 5, 4}));
  EXPECT_EQ(model.settled({3, 4, 5, 0}, {3, 4, 5, 5}, {{3, 4, 5, 5}}), (Dims{3, 4, 5, 5}));
  EXPECT_EQ(model.settled({3, 4, 5, 0}, {3, 4, 5, 4}, {{3, 4, 5, 4}, {3, 4, 5, 5}}), Dims());
}

TEST(TiedDims, NumbersOfWeights) {
  const auto weights = [](const Dims& dims) { return std::vector<Dims>{dims, {9, 3, 5, 5}}; };
  const auto channels = [](const std::vector<Dims>& operands) {
    return fits(operands[0][1] == operands[1][1]);
  };
  EXPECT_EQ(Model({{weights, channels}}).settled({2, 0, 7, 8}), (Dims{2, 3, 7, 8}));
  EXPECT_EQ(Model({{weights, channels}}).settled({2, 0, 7, 8}, {0, 3, 0, 0}), (Dims{2, 3, 7, 8}));
  // Another extent is asked for.
  EXPECT_EQ(Model({{weights, channels}}).settled({2, 0, 7, 8}, {0, 4, 0, 0}), Dims());
}

TEST(TiedDims, SeveralNumbersOfOneOperand) {
  const auto biased = [](const Dims& dims) { return std::vector<Dims>{dims, {1, 5, 6}}; };
  const auto last_two = [](const std::vector<Dims>& operands) {
    return fits(operands[0][1] == operands[1][1] && operands[0][2] == operands[1][2]);
  };
  EXPECT_EQ(Model({{biased, last_two}}).settled({7, 0, 0}), (Dims{7, 5, 6}));
}

TEST(TiedDims, ANumberThatOthersWouldDoForIsNone) {
  const auto weights = [](const Dims& dims) { return std::vector<Dims>{dims, {9}}; };
  const auto most = [](const std::vector<Dims>& operands) { return fits(operands[0][0] <= operands[1][0]); };
  const auto multiple = [](const std::vector<Dims>& operands) { return fits(operands[0][0] % 9 == 0); };
  EXPECT_EQ(Model({{weights, most}}).settled({5, 5}), Dims());
  EXPECT_EQ(Model({{weights, multiple}}).settled({5, 5}), Dims());
}

TEST(TiedDims, ANumberThatNoOperandHas) {
  // Rows of four that are to be rows of six.
  const auto rows = [](const Dims& dims) { return std::vector<Dims>{{dims[0], 4}, {2, 6}, {dims[1]}}; };
  const auto as_many = [](const std::vector<Dims>& operands) {
    return fits(operands[0][0] * operands[0][1] == operands[1][0] * operands[1][1]);
  };
  Model model({{rows, as_many}});
  EXPECT_EQ(model.settled({0, 7}), (Dims{3, 7}));
  EXPECT_EQ(model.settled({0, 7}, {3, 0}), (Dims{3, 7}));
  EXPECT_EQ(model.settled({4, 7}, {4, 0}), Dims());
  EXPECT_EQ(model.settled({4, 7}, {0, 0}, {{3, 5}, {4, 5}}), Dims());
}

TEST(TiedDims, ChecksThatAreMetOneAfterTheOther) {
  const auto layer = [](const Dims& dims) {
    return std::vector<Dims>{{dims[0], dims[1], dims[2]}, {dims[3], dims[4], dims[5]}, {24, 5}};
  };
  const auto checks = [](const std::vector<Dims>& operands) -> std::string {
    const Dims &x = operands[0], &h = operands[1];
    if (x[2] != 5) return "columns and rows";
    if (h[0] != 1) return "directions";
    if (h[1] != x[1]) return "a batch";
    return fits(h[2] == 24 / 4, "a hidden size");
  };
  const auto with_hidden = [&](const Dims& dims) {
    std::vector<Dims> operands = layer(dims);
    operands.push_back({24, 6});
    return operands;
  };
  EXPECT_EQ(Model({{with_hidden, checks}}).settled({7, 3, 0, 0, 0, 0}), (Dims{7, 3, 5, 1, 3, 6}));
}

TEST(TiedDims, WindowsThatAttributesFix) {
  const auto window = [](const std::vector<Dims>& operands) {
    return fits(operands[1][2] == 3 && operands[1][3] == 5 && operands[0][1] == operands[1][1]);
  };
  Model model({{in_order({4, 4}), window, {{3, 5}, {2, 2}}}});
  EXPECT_EQ(model.settled({2, 4, 7, 9, 6, 0, 0, 0}), (Dims{2, 4, 7, 9, 6, 4, 3, 5}));
  const auto fixed_height = [](const Dims& dims) {
    return std::vector<Dims>{{dims[0], dims[1], 8, dims[2]}, {dims[3], dims[4], dims[5], dims[6]}};
  };
  Model other({{fixed_height, window, {{3, 5}}}});
  EXPECT_EQ(other.settled({2, 4, 9, 6, 0, 0, 0}), (Dims{2, 4, 9, 6, 4, 3, 5}));
}

TEST(TiedDims, ExtentsThatFollowFromOthersTwoAtATime) {
  const auto halves = [](const Dims& dims) {
    return std::vector<Dims>{{1, (dims[0] + 1) / 2, (dims[1] + 1) / 2}, {1, dims[2], dims[3]}};
  };
  EXPECT_EQ(Model({{halves, same}}).settled({9, 12, 0, 0}), (Dims{9, 12, 5, 6}));
  EXPECT_EQ(Model({{halves, same}}).settled({9, 12, 0, 0}, {8, 8, 4, 4}), (Dims{9, 12, 5, 6}));
}

/// The operand that comes first is as large as the other one, or larger: only its channels follow.
TEST(TiedDims, WhatMayBeLessStaysFree) {
  const auto window = [](const std::vector<Dims>& operands) -> std::string {
    const Dims &x = operands[0], &w = operands[1];
    if (x[1] != w[1]) return "channels";
    return fits(w[2] <= x[2] && w[3] <= x[3], "the window is larger than what it goes over");
  };
  Model model({{in_order({4, 4}), window}});
  EXPECT_EQ(model.settled({2, 4, 7, 9, 6, 0, 3, 5}), (Dims{2, 4, 7, 9, 6, 4, 3, 5}));
  const auto swapped = [&](const std::vector<Dims>& operands) { return window({operands[1], operands[0]}); };
  Model other({{in_order({4, 4}), swapped}});
  EXPECT_EQ(other.settled({6, 4, 3, 5, 2, 0, 7, 9}), (Dims{6, 4, 3, 5, 2, 4, 7, 9}));
}

TEST(TiedDims, ManyInputsAreFoundInFewImports) {
  std::vector<Node> nodes;
  constexpr size_t kInputs = 24, kRank = 4;
  for (size_t i = 1; i < kInputs; ++i) {
    nodes.push_back({[i](const Dims& dims) {
                       const auto at = [&](size_t input) {
                         const auto begin = dims.begin() + static_cast<std::ptrdiff_t>(input * kRank);
                         return Dims(begin, begin + kRank);
                       };
                       return std::vector<Dims>{at(0), at(i)};
                     },
                     same});
  }
  Model model(std::move(nodes));
  Dims dims(kInputs * kRank, 0), expected;
  const Dims first = {2, 3, 4, 5};
  std::copy(first.begin(), first.end(), dims.begin());
  for (size_t i = 0; i < kInputs; ++i) expected.insert(expected.end(), first.begin(), first.end());
  EXPECT_EQ(model.settled(dims), expected);
  EXPECT_LT(model.imports(), 1000);
}

TEST(TiedDims, ManyOperandsOfOneNode) {
  constexpr size_t kInputs = 16;
  const auto rows = [](const std::vector<Dims>& operands) {
    return fits(std::all_of(operands.begin(), operands.end(),
                            [&](const Dims& each) { return each[0] == operands[0][0]; }));
  };
  Model model({{in_order(std::vector<size_t>(kInputs, 2)), rows}});
  Dims dims, expected;
  for (size_t i = 0; i < kInputs; ++i) {
    dims.insert(dims.end(), {i == 0 ? 4 : 0, static_cast<int64_t>(i + 5)});
    expected.insert(expected.end(), {4, static_cast<int64_t>(i + 5)});
  }
  EXPECT_EQ(model.settled(dims), expected);
  EXPECT_LT(model.imports(), 1000);
}

}  // namespace
}  // namespace tensormill::frontend::onnx
