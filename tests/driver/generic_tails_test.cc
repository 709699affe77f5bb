/// At which extents the kernels of a generic plan are compared with their reference.
#include "compiler/driver/generic_tails.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "compiler/driver/generic_planner.h"
#include "compiler/driver/generic_verifier.h"
#include "compiler/ir/bind_symbols.h"
#include "compiler/lower/lower.h"
#include "runtime/base/error.h"
#include "tests/driver/support.h"

namespace tensormill::driver {
namespace {

using driver_test::host_options;
using testing::Contains;

constexpr const char* kProduct = R"(graph "product" dims(N: 8) (%x: f32[N,40], %w: f32[40,48]) {
  %y: f32[N,48] = matmul(%x, %w)
  return %y
}
)";

/// A model of one kernel, as the rule has it, with its tails.
struct Product {
  Product() {
    const ir::SymbolicModel symbolic{driver_test::parse(kProduct), {"N"}};
    planned = GenericPlanner(options.target).plan(symbolic, {"N"}, options, nullptr);
    compiled.kernels = planned.model.kernels;
    compiled.tuning.resize(1);
    compiled.tails.push_back(plan::loops_by(*compiled.kernels.at(0).source, {}).tails);
    points = tail_points(planned.model, compiled.tails, planned.symbols.all, *planned.graph.symbols(), {2});
  }
  int64_t tile() const { return compiled.tails[0].at(0).size; }
  GenericVerifier::Point at(int64_t rows) const {
    return {{rows}, ir::bind_symbols(planned.graph, {{"N", rows}}), std::numeric_limits<int64_t>::max(), {}};
  }
  /// The kernel, which `spoil` may have changed.
  void emit(const te::Function& loops) {
    compiled.objects = {backend->emit(lower::lower(loops, options.target), options.target, {})};
  }
  GenericVerifier verifier() const {
    return {compiled, {[](const plan::Kernel&) { return true; }, Compares::kAll, 1}};
  }

  CompileOptions options = host_options(3);
  std::unique_ptr<codegen::Backend> backend = codegen::make_llvm_backend();
  PlannedModel planned{driver_test::parse(kProduct), {}, {}};
  CompiledGeneric compiled;
  TailPoints points;
};

TEST(GenericTails, ExtentsAroundEachTileAreCompared) {
  const Product product;
  ASSERT_GT(product.tile(), 1);
  for (const int64_t extent : {product.tile() - 1, product.tile(), product.tile() + 1})
    EXPECT_THAT(product.points, Contains(testing::Key(std::vector<int64_t>{extent})));
}

TEST(GenericTails, AWrongTailIsFound) {
  Product product;
  te::Function loops = product.compiled.kernels[0].loops;
  product.emit(loops);
  std::vector<GenericVerifier::Point> around;
  for (const auto& [dims, kernels] : product.points) around.push_back(product.at(dims[0]));
  EXPECT_TRUE(product.verifier().run(product.planned.model, around).empty());
  // The last row but where all blocks are whole.
  const te::Expr rows(loops.dims[0]);
  const te::Buffer& out = loops.parameters.back().buffer;
  const te::Stmt spoil =
      te::make_store(out, {rows - te::Expr(1), te::Expr(0)}, te::float_imm(DType::kFloat32, 77));
  const te::Expr is_there = rows > te::Expr(product.tile());
  loops.body = te::make_seq({loops.body, te::make_if(is_there, spoil)});
  product.emit(loops);
  EXPECT_TRUE(product.verifier().run(product.planned.model, {product.at(1), product.at(2)}).empty());
  EXPECT_THROW(product.verifier().run(product.planned.model, around), Error);
  // Of a record it is told which kernel it is, and the rule may be taken instead.
  product.compiled.tuning[0].record = "a record";
  const std::vector<GenericVerifier::Wrong> wrong = product.verifier().run(product.planned.model, around);
  ASSERT_EQ(wrong.size(), 1U);
  EXPECT_EQ(wrong[0].kernel, 0U);
}

/// Wherever the plan takes 0: the compile compares there, at the least extents, and around tiles.
TEST(GenericTails, NoElementsAreCompared) {
  Product product;
  product.emit(product.compiled.kernels[0].loops);
  bool takes_all = true;
  const ir::SymbolicModel symbolic{driver_test::parse(kProduct), {"N"}};
  const std::vector<std::vector<int64_t>> zeros =
      take_zeros(symbolic, product.planned.symbols, product.planned.model.plan, takes_all);
  EXPECT_THAT(zeros, testing::ElementsAre(std::vector<int64_t>{0}));
  EXPECT_TRUE(product.verifier().run(product.planned.model, {product.at(0), product.at(1)}).empty());
}

}  // namespace
}  // namespace tensormill::driver
