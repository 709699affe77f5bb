/// Running sums and products of long rows: the same values by one pass on the host.
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::count;

ir::Graph graph_of(const std::string& op, DType dtype, const Shape& shape, int64_t axis, int64_t flags,
                   const std::string& free = "") {
  small_nets::Net net;
  ir::ValueId x = net.input(shape, free);
  // Integers of both signs; floats near one, so that products neither vanish nor overflow.
  const bool real = is_float(dtype);
  const auto number = [&](float value) {
    return net.graph.add_constant(net.graph.unique_name("number"),
                                  Tensor::from<float>({1}, std::vector<float>{value}));
  };
  x = net.add("mul", {x, number(real ? 0.05F : 4.0F)});
  if (real) x = net.add("add", {x, number(1.0F)});
  x = net.add("cast", {x}, {{"to", dtype}});
  x = net.add(op, {x}, {{"axis", axis}, {"exclusive", flags % 2}, {"reverse", flags / 2}});
  return net.finish({net.add("cast", {x}, {{"to", DType::kFloat32}})});
}

TEST(LinearTotals, GiveTheSameValues) {
  for (const std::string op : {"cumsum", "cumprod"}) {
    for (const DType dtype :
         {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt32, DType::kInt64}) {
      for (int64_t flags = 0; flags < 4; ++flags) {
        SCOPED_TRACE(op + " of " + std::string(dtype_info(dtype).name) + ", flags " + std::to_string(flags));
        const ir::Graph graph = graph_of(op, dtype, {2, 150, 3}, flags == 3 ? -2 : 1, flags);
        const ir::Graph linear = passes::linear_totals(graph, {});
        small_nets::expect_same(graph, linear, 1e-6);
        EXPECT_EQ(count(linear, op), 0);
      }
    }
  }
}

TEST(LinearTotals, ShortRowsStayKernelsButOfFreeExtents) {
  passes::PassContext context;
  for (const bool is_generic : {false, true}) {
    context.is_generic = is_generic;
    for (const std::string free : {"", "N.", ".N"}) {
      const ir::Graph graph = graph_of("cumsum", DType::kFloat32, {150, 3}, 1, 0, free);
      EXPECT_EQ(count(passes::linear_totals(graph, context), "cumsum"), is_generic && !free.empty() ? 0 : 1);
      if (!is_generic) break;
    }
  }
}

}  // namespace
}  // namespace tensormill
