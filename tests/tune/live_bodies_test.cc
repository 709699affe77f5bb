#include "compiler/tune/live_bodies.h"

#include <gtest/gtest.h>

#include <map>

#include "compiler/target/target.h"

namespace tensormill::tune {
namespace {

/// Columns of an image in tiles: `outer` (a loop) x `inner` (unrolled), and a window's column around the
/// tile.
class LiveBodies : public testing::Test {
protected:
  te::Var outer_ = te::make_var("outer"), tap_ = te::make_var("tap"), inner_ = te::make_var("inner"),
          tile_ = te::make_var("tile");

  std::vector<NestLoop> loops(double tiles, double columns) const {
    return {{outer_, tiles, te::ForKind::kSerial},
            {tap_, 3, te::ForKind::kSerial},
            {inner_, columns, te::ForKind::kUnrolled}};
  }
  Values first_iterations() const {
    Values values;
    for (const te::Var* var : {&outer_, &tap_, &inner_}) values.push(var->get(), 0);
    return values;
  }
  static std::map<double, double> shares_by_copies(const std::vector<LiveBody>& bodies) {
    std::map<double, double> shares;
    for (const LiveBody& body : bodies) shares[body.loops.back().extent] += body.share;
    return shares;
  }
  static te::Expr of(const te::Var& var) { return te::Expr(var); }
};

TEST_F(LiveBodies, WithoutConditionsEachIsWhole) {
  Values values = first_iterations();
  const std::vector<LiveBody> bodies = live_bodies({}, loops(4, 4), {}, values);
  EXPECT_EQ(shares_by_copies(bodies), (std::map<double, double>{{4, 1}}));
}

TEST_F(LiveBodies, TheLastTileIsWhatIsLeft) {
  Values values = first_iterations();
  const te::Expr inside = of(outer_) * 4 + of(inner_) < 14;
  EXPECT_EQ(shares_by_copies(live_bodies({inside}, loops(4, 4), {}, values)),
            (std::map<double, double>{{4, 0.75}, {2, 0.25}}));
  for (const te::Var* var : {&outer_, &tap_, &inner_})
    EXPECT_EQ(*values.find(var->get()), 0) << "left as it was";
}

TEST_F(LiveBodies, LetsAreFollowed) {
  Values values = first_iterations();
  values.push(tile_.get(), 0);
  const Lets lets = {{tile_, te::floordiv(of(outer_), 2)}};
  const te::Expr inside = of(tile_) * 5 + of(inner_) < 13;
  EXPECT_EQ(shares_by_copies(live_bodies({inside}, loops(8, 5), lets, values)),
            (std::map<double, double>{{5, 0.5}, {3, 0.25}, {0, 0.25}}));
  EXPECT_EQ(*values.find(tile_.get()), 0);
}

TEST_F(LiveBodies, TheBorderOfAnImageLeavesOutACopyOfOneTap) {
  Values values = first_iterations();
  const te::Expr border = of(outer_) * 7 + of(inner_) + of(tap_) - 1 >= 0;
  const std::map<double, double> shares = shares_by_copies(live_bodies({border}, loops(2, 7), {}, values));
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_NEAR(shares.at(6), 1.0 / 6, 1e-12);
  EXPECT_NEAR(shares.at(7), 5.0 / 6, 1e-12);
}

TEST_F(LiveBodies, OfManyIterationsTheLastIsLookedAt) {
  Values values = first_iterations();
  const te::Expr inside = of(outer_) * 4 + of(inner_) < 100000 * 4 - 1;
  const std::map<double, double> shares =
      shares_by_copies(live_bodies({inside}, loops(100000, 4), {}, values));
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_GT(shares.at(3), 0);
  EXPECT_LT(shares.at(3), 0.01);
}

// Tails of one column wait for the latency that four hide; where vectors take two turns, loads do too.
TEST_F(LiveBodies, CyclesOfWhatIsLeftOver) {
  target::CpuFacts facts;
  facts.vector_bits = 512;
  facts.vector_registers = 32;
  const auto cycles = [&](double copies, int products_per_cycle) {
    facts.products_per_cycle = products_per_cycle;
    const std::vector<NestLoop> nest = {{outer_, 100, te::ForKind::kSerial},
                                        {inner_, copies, te::ForKind::kUnrolled},
                                        {tap_, 16, te::ForKind::kVectorized}};
    NestAccess sums, input, weights;
    sums.in_register = true;
    sums.buffer_elements = 64;
    sums.steps = {0, 16, 1};
    input.steps = {16, 1, 0};
    weights.steps = {16, 0, 1};
    return port_cycles({sums, sums, input, weights}, nest, 1, facts).ports / 100;
  };
  EXPECT_EQ(cycles(8, 1), 8);
  EXPECT_EQ(cycles(4, 1), 4);
  EXPECT_EQ(cycles(1, 1), 4);
  EXPECT_EQ(cycles(8, 2), 4.5) << "eight loads of one element, two a cycle, and half a cycle of a vector";
}

}  // namespace
}  // namespace tensormill::tune
