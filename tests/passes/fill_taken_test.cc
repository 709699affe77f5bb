/// What is taken of an extent that data decides: the same values by a kernel.
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::count;

/// The first of x along an axis, and how many, as float32.
ir::Graph graph_of(DType dtype, int64_t number, int64_t axis, bool fits = true) {
  small_nets::Net net;
  ir::Attrs attrs{{"axis", axis}};
  if (fits) attrs.set("fits", int64_t{1});
  const ir::ValueId ten = net.graph.add_constant("ten", Tensor::from<float>({1}, std::vector<float>{10.0F}));
  const ir::ValueId x = net.add("cast", {net.add("mul", {net.input({3, 4, 2}), ten})}, {{"to", dtype}});
  const ir::ValueId first =
      net.graph.add_constant("number", Tensor::from<int64_t>({1}, std::vector<int64_t>{number}));
  const std::vector<ir::ValueId> taken =
      net.graph.add_node("take_first", {x, first}, std::move(attrs), {"taken"}, {"y", "y_count"});
  return net.finish({net.add("cast", {taken[0]}, {{"to", DType::kFloat32}}),
                     net.add("cast", {taken[1]}, {{"to", DType::kFloat32}})});
}

TEST(FillTaken, GivesTheSameValues) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt64, DType::kInt8, DType::kUInt8}) {
    for (const int64_t axis : {0, 1, 2}) {
      for (const int64_t number : {1, 2}) {
        SCOPED_TRACE(std::string(dtype_info(dtype).name) + ", " + std::to_string(number) + " along " +
                     std::to_string(axis));
        const ir::Graph graph = graph_of(dtype, number, axis);
        const ir::Graph filled = passes::fill_taken(graph, {});
        small_nets::expect_same(graph, filled, 0);
        EXPECT_EQ(count(filled, "take_first"), 0);
      }
    }
  }
}

TEST(FillTaken, LeavesWhatIsNoNumberAndWhatMayBePastTheExtent) {
  EXPECT_EQ(count(passes::fill_taken(graph_of(DType::kBool, 1, 0), {}), "take_first"), 1);
  EXPECT_EQ(count(passes::fill_taken(graph_of(DType::kFloat32, 7, 0, false), {}), "take_first"), 1);
}

}  // namespace
}  // namespace tensormill
