/// Products of few rows by a transposed operand: the same values without turning it round.
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::count;
using small_nets::expect_same;

ir::Graph product(const Shape& left, const Shape& right, const std::vector<int64_t>& perm,
                  const std::string& free = "") {
  small_nets::Net net;
  const ir::ValueId turned = net.add("transpose", {net.input(right)}, {{"perm", perm}});
  return net.finish({net.add("matmul", {net.input(left, free), turned},
                             {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{0}}})});
}

ir::Graph changed(const ir::Graph& graph, bool is_generic = false) {
  passes::PassContext context;
  context.is_generic = is_generic;
  return passes::transposed_products(graph, context);
}

TEST(TransposedProducts, OfFewRowsReadTheOperandAsItLies) {
  for (const int64_t rows : {1, 3}) {
    const ir::Graph plain = product({rows, 5}, {7, 5}, {1, 0});
    expect_same(plain, changed(plain), 1e-6);
    EXPECT_EQ(count(changed(plain), "transpose"), 0);
    // Heads are still moved in front.
    const ir::Graph heads = product({2, 3, rows, 5}, {2, 7, 3, 5}, {0, 2, 3, 1});
    const ir::Graph moved = changed(heads);
    expect_same(heads, moved, 1e-6);
    ASSERT_EQ(count(moved, "transpose"), 1);
    for (const ir::Node& node : moved.nodes()) {
      if (node.op != "transpose") continue;
      EXPECT_EQ(node.attrs.ints_of("perm"), (std::vector<int64_t>{0, 2, 1, 3}));
    }
  }
}

TEST(TransposedProducts, OthersStayAsTheyAre) {
  for (const ir::Graph& graph : {product({40, 5}, {7, 5}, {1, 0}), product({2, 1, 5}, {2, 5, 7}, {0, 1, 2})})
    EXPECT_EQ(count(changed(graph), "transpose"), 1);
  // Of free extents, one row alone is few.
  EXPECT_EQ(count(changed(product({2, 1, 5}, {2, 7, 5}, {0, 2, 1}, "N.."), true), "transpose"), 0);
  EXPECT_EQ(count(changed(product({2, 5}, {7, 5}, {1, 0}, "M."), true), "transpose"), 1);
  EXPECT_EQ(count(changed(product({2, 5}, {7, 5}, {1, 0}), true), "transpose"), 0);
}

}  // namespace
}  // namespace tensormill
