// What operators demand of free extents holds in all runs: it follows from no extents at which a model is
// looked at.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/build/maps/conv_pool.h"
#include "compiler/build/model_graph.h"
#include "compiler/build/pictures/filter_axis.h"
#include "compiler/build/pictures/resize_nodes.h"
#include "compiler/ops/ops.h"

namespace tensormill::build {
namespace {

class FreeBounds : public testing::Test {
protected:
  FreeBounds() { graph_.set_symbols(std::make_shared<ir::SymbolTable>()); }

  ir::SymInt free(const std::string& name, int64_t hint) { return graph_.symbols()->add(name, hint); }
  ir::ValueId input(DType dtype, const ir::SymShape& shape) {
    return graph_.add_input(graph_.unique_name("x"), {dtype, shape});
  }
  /// Whether what was built is right where the extents are those.
  bool holds_at(const std::map<std::string, int64_t>& extents) const {
    const std::vector<ir::Guard>& guards = graph_.symbols()->guards();
    return std::all_of(guards.begin(), guards.end(),
                       [&](const ir::Guard& guard) { return ir::holds_at(guard, extents); });
  }
  /// Whether no other kernels could be made for other extents.
  bool is_demanded() const {
    const std::vector<ir::Guard>& guards = graph_.symbols()->guards();
    return std::all_of(guards.begin(), guards.end(), [](const ir::Guard& guard) { return guard.demanded; });
  }

  ir::Graph graph_{ops::standard_ops()};
  const std::set<std::string> reserved_;
  OpBuilder builder_{graph_, "node", "node", reserved_};
};

TEST_F(FreeBounds, OfTablesOfFilters) {
  const ir::SymInt h = free("H", 8), w = free("W", 16);
  const ir::ValueId x = input(DType::kFloat32, {1, h}), scale = input(DType::kFloat32, {1});
  filtered(builder_, x, 1, {h, w, scale, ir::kAbsent}, "triangle", true);
  EXPECT_TRUE(is_demanded());
  EXPECT_TRUE(holds_at({{"H", 4096}, {"W", 4096}}));
  EXPECT_FALSE(holds_at({{"H", 4096}, {"W", 4097}}));
}

TEST_F(FreeBounds, OfTablesOfMeans) {
  const ir::SymInt h = free("H", 8);
  area_means(builder_, input(DType::kFloat32, {1, h}), 1, 256, false);
  EXPECT_TRUE(holds_at({{"H", 1 << 16}}));
  EXPECT_FALSE(holds_at({{"H", (1 << 16) + 1}}));
}

TEST_F(FreeBounds, OfTablesThatAreTooLargeAtOnce) {
  const ir::ValueId x = input(DType::kFloat32, {1, 1 << 13});
  try {
    area_means(builder_, x, 1, 1 << 12, false);
    FAIL() << "a table of 2^25 weights was made";
  } catch (const UnsupportedForm& form) {
    EXPECT_EQ(form.attribute, "size");
  }
}

TEST_F(FreeBounds, OfResizedAxes) {
  const ir::SymInt w = free("W", 8);
  ResizeAxis axis;
  axis.in = 5;
  axis.out = w;
  axis.by_size = true;
  ResizeOptions options;
  options.mode = "nearest";
  resize_along(builder_, input(DType::kFloat32, {1, 5}), 1, axis, options);
  EXPECT_TRUE(is_demanded());
  EXPECT_TRUE(holds_at({{"W", kMaxListed}}));
  EXPECT_FALSE(holds_at({{"W", kMaxListed + 1}}));
}

// float64 has the sums of so many products of halves.
TEST_F(FreeBounds, OfSumsThatAreExact) {
  const ir::SymInt k = free("K", 8);
  const ir::ValueId x = input(DType::kInt32, {2, k}), w = input(DType::kInt32, {k, 3});
  Compose c(builder_);
  exact_sums(builder_, x, w, k, [&](ir::ValueId a, ir::ValueId b) { return c.matmul(a, b); });
  EXPECT_TRUE(holds_at({{"K", 1 << 20}}));
  EXPECT_FALSE(holds_at({{"K", (1 << 20) + 1}}));
}

// A value has the extents that it has: others that bear the dim's name are as long.
TEST_F(FreeBounds, OfInputsThatAreGiven) {
  const ir::SymInt n = free("N", 2);
  GraphRequest request;
  request.input_shapes.push_back({n, 3});
  request.fixed_inputs.emplace("x", Tensor::zeros(DType::kFloat32, {2, 3}));
  add_input(graph_, request, 0, "x", DType::kFloat32);
  EXPECT_TRUE(holds_at({{"N", 2}}));
  EXPECT_FALSE(holds_at({{"N", 3}}));
}

}  // namespace
}  // namespace tensormill::build
