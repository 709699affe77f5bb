/// Proofs that need several facts at once.
#include <gtest/gtest.h>

#include "compiler/te/simplify.h"

namespace tensormill::te {
namespace {

// The last vector of a row that is put into a larger one: two facts are enough, and others lead round in
// circles.
TEST(Bounds, ProvesTheEndOfARowByTwoFacts) {
  const Var width = make_var("width"), all = make_var("all"), before = make_var("before");
  const Var row = make_var("row"), vector = make_var("vector"), lane = make_var("lane");
  BoundsContext context;
  for (const Var& dim : {width, all, before}) context.bind(dim, {0, int64_t{1} << 40});
  const Expr last = Expr(all) * 2 + 1, own = Expr(vector) * 16 + lane;
  context.bind_extent(row, 0, last);
  context.assume(Expr(row) - before >= 0);
  context.assume(Expr(row) - before < width);
  context.assume(Expr(width) + before <= last);
  context.bind_extent(vector, 0, floordiv(Expr(width) + 15, 16));
  context.assume(logical_not((Expr(vector) + 1) * 16 <= width));
  context.bind_extent(lane, 0, 16);
  EXPECT_FALSE(context.proves(own + before < last));
  context.assume(own < width);
  EXPECT_TRUE(context.proves(own + before < last));
}

// floordiv(t + k, c) <= t where t is 0 or more: quotient and dividend pull in opposite directions, and what
// is left of the dividend is more than the remainder that stands in its place.
TEST(Bounds, ProvesQuotientsBelowTheirDividends) {
  for (int64_t held = 0; held <= 4; ++held) {
    for (int64_t c = 2; c <= 4; ++c) {
      for (int64_t more = -1; more <= c; ++more) {
        const Var run = make_var("run");
        BoundsContext context;
        context.bind(run, {0, int64_t{1} << 40});
        const Expr rest = Expr(held) - min(Expr(run), Expr(held)), part = floordiv(rest + more, Expr(c));
        bool is_below = true, is_above = true;
        for (int64_t t = 0; t <= held; ++t) {
          const int64_t quotient = (t + more + c) / c - 1;
          is_below &= quotient <= t;
          is_above &= quotient >= t - held;
        }
        EXPECT_EQ(context.proves(part <= rest), is_below) << held << " " << more << " " << c;
        EXPECT_EQ(context.proves(rest - part <= held), is_above) << held << " " << more << " " << c;
      }
    }
  }
}

}  // namespace
}  // namespace tensormill::te
