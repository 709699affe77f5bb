#include "compiler/te/simplify.h"

#include <gtest/gtest.h>

#include <limits>

#include "compiler/te/rewrite_reads.h"
#include "compiler/te/text.h"
#include "tests/te/random_expr.h"

namespace tensormill::te {
namespace {

struct Fixture {
  Var a = make_var("a"), b = make_var("b"), i = make_var("i"), j = make_var("j"), n = make_var("n");
  BoundsContext context;
  Fixture() {
    context.bind(a, {0, 100});
    context.bind(b, {-20, 20});
    context.bind_extent(i, 0, 16);
    context.bind_extent(j, 0, 8);
  }
  std::string text(const Expr& expr) const { return print(simplify(expr, context)); }
};

TEST(Simplify, CancelsTerms) {
  const Fixture f;
  EXPECT_EQ(f.text((Expr(f.a) * 16 + f.b) - Expr(f.a) * 16), "b");
  EXPECT_EQ(f.text(Expr(f.a) + f.b - f.a - f.b), "0");
  EXPECT_EQ(f.text((Expr(f.a) + 1) * f.n - Expr(f.n) * f.a), "n");
  EXPECT_EQ(f.text(Expr(f.b) * 3 + 2 + f.a - 7), "((a + (b * 3)) - 5)");
  EXPECT_EQ(f.text(5 - Expr(f.b)), "(5 - b)");
}

/// What is assumed may contradict itself: a branch that no run takes has divisors without a value.
TEST(Simplify, DividesByWhatHasNoValue) {
  Fixture f;
  f.context.bind(f.b, {5, 0});
  for (const Expr& rest : {floordiv(f.a, f.b), floormod(f.a, f.b), Expr(f.a) / f.b})
    EXPECT_NO_THROW(f.context.proves(rest <= f.n));
}

TEST(Simplify, SplitsDivisions) {
  const Fixture f;
  const Expr fused = Expr(f.a) * 16 + f.i;
  EXPECT_EQ(f.text(floordiv(fused, 16)), "a");
  EXPECT_EQ(f.text(floormod(fused, 16)), "i");
  EXPECT_EQ(f.text(floordiv(fused, 4)), "((a * 4) + floordiv(i, 4))");
  EXPECT_EQ(f.text(floordiv(floordiv(f.n, 4), 5)), "floordiv(n, 20)");
  EXPECT_EQ(f.text(floormod(Expr(f.n) * 6 + 3, 4)), "((floormod(((n * 3) + 1), 2) * 2) + 1)");
  EXPECT_EQ(f.text(floordiv(f.n, 8) * 8 + floormod(f.n, 8)), "n");
  EXPECT_EQ(f.text(floordiv(f.n, 32) * 32 + floormod(floordiv(f.n, 8), 4) * 8 + floormod(f.n, 8)), "n");
  EXPECT_EQ(f.text(floormod(floormod(f.n, 32), 8)), "floormod(n, 8)");
  EXPECT_EQ(f.text(Expr(f.n) - floordiv(f.n, 8) * 8), "floormod(n, 8)");
  EXPECT_EQ(f.text(floordiv(f.n, 5) - floordiv(f.n, 205) * 41), "floormod(floordiv(n, 5), 41)");
  EXPECT_EQ(f.text(Expr(f.n) * 17 - floordiv(f.n, 8) * 135), "(floordiv(n, 8) + (floormod(n, 8) * 17))");
  EXPECT_EQ(f.text(Expr(f.a) / 3), "floordiv(a, 3)");
}

TEST(Simplify, DecidesMinMaxAndComparisons) {
  const Fixture f;
  EXPECT_EQ(f.text(min(Expr(f.i), Expr(15))), "i");
  EXPECT_EQ(f.text(max(Expr(f.i) - 20, Expr(0))), "0");
  EXPECT_EQ(f.text(Expr(f.i) < 16), "true");
  EXPECT_EQ(f.text(Expr(f.i) >= 16), "false");
  EXPECT_EQ(f.text(select(Expr(f.j) > 7, Expr(f.a), Expr(f.b))), "b");
  EXPECT_EQ(f.text(Expr(f.a) + 3 < Expr(f.n) + 3), "(a < n)");
  EXPECT_EQ(f.text(logical_not(Expr(f.a) < f.n)), "(a >= n)");
  const Var x = make_var("x", DType::kFloat32);
  EXPECT_EQ(f.text(logical_not(Expr(x) < float_imm(DType::kFloat32, 1))), "not((x < 1:f32))");
  EXPECT_EQ(f.text(Expr(x) + float_imm(DType::kFloat32, 0)), "(x + 0:f32)");
  EXPECT_EQ(f.text(Expr(x) == Expr(x)), "(x == x)");
}

TEST(Simplify, MakesRamps) {
  const Fixture f;
  const Expr lanes = ramp(Expr(f.i) * 8, 1, 8);
  EXPECT_EQ(f.text(lanes + broadcast(f.a, 8)), "ramp.8((a + (i * 8)), 1)");
  EXPECT_EQ(f.text(lanes * 3), "ramp.8((i * 24), 3)");
  EXPECT_EQ(f.text(floordiv(lanes, 8)), "broadcast.8(i)");
  EXPECT_EQ(f.text(floormod(lanes, 8)), "ramp.8(0, 1)");
  EXPECT_EQ(f.text(lanes * broadcast(f.n, 8)), "ramp.8(((i * n) * 8), n)");
  EXPECT_EQ(f.text(lanes < 128), "true:boolx8");
  EXPECT_EQ(f.text(min(lanes, broadcast(Expr(500), 8))), "ramp.8((i * 8), 1)");
}

TEST(Simplify, KeepsWhatMayWrap) {
  Fixture f;
  const Var loaded = make_var("loaded");
  f.context.bind(loaded, {});
  EXPECT_EQ(f.text(Expr(loaded) + 1 > loaded), "((loaded + 1) > loaded)");
  EXPECT_EQ(f.text(Expr(loaded) - 5 < 0), "((loaded - 5) < 0)");
  EXPECT_EQ(f.text(floordiv(Expr(loaded) * 4 + 1, 4)), "floordiv(((loaded * 4) + 1), 4)");
  EXPECT_EQ(f.text(Expr(loaded) <= std::numeric_limits<int64_t>::max()), "true");
}

// A split of 100 by 16 with a guard, and with a clipped extent.
TEST(Bounds, ProvesSplitTails) {
  const Var outer = make_var("outer"), inner = make_var("inner");
  BoundsContext guarded;
  guarded.bind_extent(outer, 0, 7);
  guarded.bind_extent(inner, 0, 16);
  const Expr index = Expr(outer) * 16 + inner;
  EXPECT_FALSE(guarded.proves(index < 100));
  guarded.assume(index < 100);
  EXPECT_TRUE(guarded.proves(index < 100));
  EXPECT_TRUE(guarded.proves(index * 3 + 2 < 300));

  BoundsContext clipped;
  clipped.bind_extent(outer, 0, 7);
  clipped.bind_extent(inner, 0, min(Expr(16), 100 - Expr(outer) * 16));
  EXPECT_TRUE(clipped.proves(index < 100));
  EXPECT_TRUE(clipped.proves(index >= 0));
  EXPECT_FALSE(clipped.proves(index < 99));
}

// Rows of two images in one loop, several at a time, with taps that may lie outside of an image: the guard
// speaks of a row in its image, the flat index of a row of all images.
TEST(Bounds, ProvesFlatIndicesUnderGuardsOfRemainders) {
  const Var rows = make_var("rows"), row = make_var("row"), tap = make_var("tap");
  BoundsContext context;
  context.bind_extent(rows, 0, 28);
  context.bind_extent(row, 0, 2);
  context.bind_extent(tap, 0, 3);
  const Expr input = Expr(row) + tap + floormod(Expr(rows), 14) * 2 - 1;
  const Expr index = Expr(row) * 10 + Expr(tap) * 10 + Expr(rows) * 20 - 10;
  context.assume(input >= 0);
  context.assume(input < 28);
  EXPECT_TRUE(context.proves(index >= 0));
  EXPECT_TRUE(context.proves(index < 560));
  EXPECT_FALSE(context.proves(index < 550));

  BoundsContext first_tap;  // of one row, written out
  first_tap.bind_extent(rows, 0, 14);
  first_tap.assume(floormod(Expr(rows), 7) >= 1);
  EXPECT_TRUE(first_tap.proves(Expr(rows) * 40 - 40 >= 0));
  EXPECT_FALSE(first_tap.proves(Expr(rows) * 40 - 41 >= 0));
}

TEST(Bounds, ProvesFlatIndicesOfRemaindersInDigits) {
  const Var loop = make_var("loop"), row = make_var("row"), tap = make_var("tap");
  BoundsContext context;
  context.bind_extent(loop, 0, 28);
  context.bind_extent(row, 0, 2);
  context.bind_extent(tap, 0, 3);
  const Expr parts = floordiv(Expr(loop), 4), half = floormod(floordiv(Expr(loop), 2), 2);
  const Expr input = Expr(row) + tap + parts * 4 + floormod(Expr(loop), 2) * 2 - 1;
  // 10 * input + 280 * half, as it stands when the remainders are joined: 20 of each half are in the first.
  const Expr index =
      parts * 40 + Expr(row) * 10 + Expr(tap) * 10 + floormod(Expr(loop), 4) * 20 + half * 240 - 10;
  context.assume(input >= 0);
  context.assume(input < 28);
  EXPECT_TRUE(context.proves(index >= 0));
  EXPECT_TRUE(context.proves(index < 560));
  EXPECT_FALSE(context.proves(index < 550));
}

// A row of 37 elements of [2,7,3] in vectors of 16: what is left out keeps the quotient from its third value.
TEST(Bounds, ProvesFlatIndicesWhoseQuotientEndsWithTheRow) {
  const Var outer = make_var("outer"), inner = make_var("inner");
  BoundsContext context;
  context.bind_extent(outer, 0, 3);
  context.bind_extent(inner, 0, 16);
  const Expr element = Expr(outer) * 16 + inner;
  const Expr index = floordiv(element, 21) * 3 + floormod(Expr(outer) + inner, 3);
  EXPECT_FALSE(context.proves(index < 6));
  context.assume(element < 37);
  EXPECT_TRUE(context.proves(index < 6));
  EXPECT_FALSE(context.proves(index < 5));
  // And downwards.
  context.assume(element >= 21);
  EXPECT_TRUE(context.proves(index >= 3));
  EXPECT_FALSE(context.proves(index >= 4));
}

// Five channels at a time of six, three or two of which read one group of rows: the guard speaks of a
// channel, the index of the group, as one quotient and with whole groups taken out of it, and of places in
// it.
TEST(Bounds, ProvesFlatIndicesOfGroupsUnderTheGuardOfATail) {
  const Var fused = make_var("fused"), outer = make_var("outer"), inner = make_var("inner"),
            column = make_var("column"), depth = make_var("depth"), tap_row = make_var("tap_row"),
            tap_column = make_var("tap_column"), lane = make_var("lane");
  BoundsContext context;
  context.bind_extent(fused, 0, 10);
  context.bind_value(outer, floormod(Expr(fused), 2));
  context.bind_extent(inner, 0, 5);
  context.bind_extent(column, 0, 5);
  context.bind_extent(depth, 0, 2);
  context.bind_extent(tap_row, 0, 3);
  context.bind_extent(tap_column, 0, 3);
  context.bind_extent(lane, 0, 4);
  const Expr y = floordiv(Expr(fused), 2) + tap_row - 1, x = Expr(column) + tap_column - 1;
  context.assume(y >= 0);
  context.assume(y < 5);
  context.assume(x >= 0);
  context.assume(x < 5);
  BoundsContext guarded = context;
  guarded.assume(Expr(outer) * 5 + inner < 6);
  const Expr channel = Expr(outer) * 5 + inner, place = Expr(depth) * 100 + y * 20 + x * 4 + lane;
  const std::pair<Expr, int64_t> groups[] = {{Expr(outer) + floordiv(Expr(inner) + Expr(outer) * 2, 3), 2},
                                             {floordiv(channel, 3), 2},
                                             {Expr(outer) * 2 + floordiv(Expr(outer) + inner, 2), 3}};
  for (const auto& [group, count] : groups) {
    const Expr index = group * 200 + place;
    EXPECT_TRUE(guarded.proves(index >= 0)) << print(group);
    EXPECT_TRUE(guarded.proves(index < count * 200)) << print(group);
    EXPECT_FALSE(guarded.proves(index < count * 200 - 1)) << print(group);
    EXPECT_TRUE(guarded.proves(Expr(1000) - index > 1000 - count * 200)) << print(group);
    EXPECT_FALSE(guarded.proves(Expr(1000) - index > 1001 - count * 200)) << print(group);
    EXPECT_FALSE(context.proves(index < count * 200)) << print(group);
  }
}

/// A reflected pad: of many clamps one would try each case, but their ranges and the guard are enough.
TEST(Bounds, ProvesClampedPlacesUnderTheGuardOfATail) {
  const Var flat = make_var("flat"), outer = make_var("outer"), lane = make_var("lane");
  BoundsContext context;
  context.bind_extent(flat, Expr(0), Expr(384));
  context.bind_extent(outer, Expr(0), Expr(8));
  context.bind_extent(lane, Expr(0), Expr(4));
  const Expr column = Expr(outer) * 4 + Expr(lane);
  context.assume(column < Expr(31));
  const Expr row = floordiv(Expr(flat), Expr(8)), image = floordiv(Expr(flat), Expr(64));
  const Expr placed = max(floormod(row, Expr(8)) + Expr(-2), row * Expr(-1) + image * 8 + 2);
  const Expr index = min(min(image, image * Expr(-1) + 6), Expr(3)) * 124 +
                     max(min(min(placed, placed * Expr(-1) + 6), Expr(3)), Expr(0)) * 31 + column;
  EXPECT_TRUE(context.proves(index < Expr(496)));
  EXPECT_TRUE(context.proves(index >= Expr(0)));
  EXPECT_FALSE(context.proves(index < Expr(495)));
}

TEST(Bounds, ProvesSymbolicSplits) {
  const Var n = make_var("n"), m = make_var("m"), outer = make_var("outer"), inner = make_var("inner"),
            k = make_var("k");
  BoundsContext context;
  context.bind(n, {0, int64_t{1} << 40});
  context.bind(m, {0, int64_t{1} << 40});
  context.bind_extent(outer, 0, floordiv(Expr(n) + 15, 16));
  context.bind_extent(inner, 0, min(Expr(16), Expr(n) - Expr(outer) * 16));
  context.bind_extent(k, 0, Expr(m));
  const Expr index = Expr(outer) * 16 + inner;
  EXPECT_TRUE(context.proves(index < n));
  EXPECT_TRUE(context.proves(index >= 0));
  EXPECT_TRUE(context.proves(Expr(k) < m));
  EXPECT_TRUE(context.proves(Expr(outer) * 16 < Expr(n) + 15));
  EXPECT_FALSE(context.proves(Expr(k) < n));
}

// A fused loop cut into pieces that know nothing of the axes, taken apart again under the guard of the tail.
TEST(Bounds, ProvesUnfusedIndices) {
  const Var piece = make_var("piece"), inner = make_var("inner"), whole = make_var("whole");
  BoundsContext context;
  context.bind_extent(piece, 0, 16);
  context.bind_extent(inner, 0, 190);
  const Expr fused = Expr(piece) * 190 + inner;
  context.bind_value(whole, fused);
  context.assume(Expr(whole) < 3034);
  for (const Expr& index : {fused, Expr(whole)}) {
    EXPECT_TRUE(context.proves(floordiv(index, 82) < 37)) << print(index);
    EXPECT_FALSE(context.proves(floordiv(index, 82) < 36));
    EXPECT_TRUE(context.proves(floordiv(index, 2) - floordiv(index, 82) * 41 < 41));
    EXPECT_TRUE(context.proves(simplify(floordiv(index, 82), context) < 37));
  }
}

TEST(Bounds, UsesMasksLaneByLane) {
  const Var outer = make_var("outer");
  BoundsContext context;
  context.bind_extent(outer, 0, 2);
  const Expr lanes = ramp(Expr(outer) * 8, 1, 8);
  EXPECT_TRUE(context.proves(lanes < 16));
  EXPECT_FALSE(context.proves(lanes < 13));
  EXPECT_EQ(context.bounds(lanes).high, 15);
}

TEST(Bounds, ClampedAndCheckedIndices) {
  const Var x = make_var("x"), n = make_var("n");
  BoundsContext context;
  context.bind(x, {});
  context.bind(n, {1, 1000});
  const Expr clamped = max(min(Expr(x), Expr(n) - 1), Expr(0));
  EXPECT_TRUE(context.proves(clamped < n));
  EXPECT_TRUE(context.proves(clamped >= 0));
  EXPECT_TRUE(context.proves(check_index(x, n) < n));
  EXPECT_TRUE(context.proves(check_index(x, n) >= 0));
  EXPECT_FALSE(context.proves(Expr(x) < n));
}

TEST(Bounds, AnOnlyPlaceIsNoWayOfASearch) {
  const Var task = make_var("task"), outer = make_var("outer"), inner = make_var("inner"),
            data = make_var("data");
  BoundsContext context;
  context.bind(task, {0, 1151});
  context.bind(outer, {0, 1});
  context.bind(inner, {0, 7});
  context.bind(data, {});
  context.assume(Expr(outer) * 8 + inner < 10);
  const Expr rows = min(floordiv(Expr(task), 18), Expr(15)) * 90 + floormod(floordiv(Expr(task), 2), 9) * 10;
  const Expr own = rows + Expr(outer) * 8 + inner;
  const Expr held = min(max(Expr(data), Expr(0)), Expr(0));
  const Expr place = check_index(select(held < 0, held + 1, held), 1);
  EXPECT_TRUE(context.proves(own < 1440));
  EXPECT_TRUE(context.proves(place * 1440 + own < 1440));
  EXPECT_TRUE(context.proves(place * 1440 + own >= 0));
  EXPECT_FALSE(context.proves(place * 1440 + own < 1439));
}

TEST(Simplify, KeepsChecksWhoseValueIsKnown) {
  const Fixture f;
  const Expr check = check_index(f.n, 1);
  for (const Expr& expr : {check == Expr(0), check < Expr(0), min(check, Expr(5)), max(Expr(f.a), check)})
    EXPECT_NE(f.text(expr).find("check_index(n, 1)"), std::string::npos) << f.text(expr);
}

/// What is read is no index by itself, whatever it is held to: the verifier takes no other reason.
TEST(Simplify, KeepsChecksOfWhatIsRead) {
  const Fixture f;
  const Buffer places = make_buffer("places", DType::kInt64, {Expr(8)}, Scope::kParameter);
  const Expr held = min(max(load(places, {Expr(0)}), Expr(0)), Expr(5));
  const std::string text = f.text(check_index(select(held < 0, held + 6, held), 6));
  EXPECT_NE(text.find("check_index("), std::string::npos) << text;
}

/// An index out of range stops the run, also where nothing is made of the element that it is of.
TEST(Simplify, KeepsChecksOfWhatIsLeftOut) {
  const Fixture f;
  const auto all = [&](const Expr& check) {
    const Expr yes = bool_imm(true), no = bool_imm(false), small = Expr(check) < Expr(3);
    return std::vector<Expr>{select(check >= 0, f.a, f.a),
                             select(yes, f.a, check),
                             select(no, check, f.a),
                             select(small, Expr(f.a), Expr(f.a)),
                             check * 0,
                             Expr(0) * check + 1,
                             check - check,
                             floordiv(check, 128),
                             floormod(check * 8 + f.j, 8),
                             logical_and(small, no),
                             logical_or(yes, small),
                             check + Expr(f.a) < check + Expr(f.b),
                             cast(DType::kInt32, check) == cast(DType::kInt32, check)};
  };
  for (const Expr& expr : all(check_index(f.n, 101)))
    EXPECT_NE(f.text(expr).find("check_index(n, 101)"), std::string::npos)
        << print(expr) << " " << f.text(expr);
  for (const Expr& expr : all(check_index(f.a, 101)))
    EXPECT_EQ(f.text(expr).find("check_index"), std::string::npos) << print(expr) << " " << f.text(expr);
}

TEST(Simplify, ChecksOfAPlaceThatTheElementIsTheSameAtStay) {
  const Fixture f;
  const Var x = make_var("x"), y = make_var("y");
  const std::vector<Expr> index{check_index(f.n, 7), check_index(f.b, 9)};
  const auto checked = [&](const Expr& body, const Expr& value) {
    return f.text(with_checks_of(value, body, {x, y}, index));
  };
  EXPECT_EQ(checked(Expr(x) + y, index[0] + index[1]), f.text(index[0] + index[1]));
  const std::string beside_one = checked(Expr(x), index[0]), beside_none = checked(Expr(5), Expr(5));
  EXPECT_NE(beside_one.find("check_index(b, 9)"), std::string::npos) << beside_one;
  EXPECT_NE(beside_none.find("check_index(n, 7)"), std::string::npos) << beside_none;
  EXPECT_NE(beside_none.find("check_index(b, 9)"), std::string::npos) << beside_none;
}

TEST(SimplifyStmt, DropsDeadCode) {
  const Var i = make_var("i"), j = make_var("j");
  const Buffer buffer = make_buffer("b", DType::kInt64, {Expr(64)}, Scope::kParameter);
  const Stmt store = make_store(buffer, {Expr(i) * 16 + j}, Expr(j));
  const Stmt guarded = make_if(Expr(i) * 16 + j < 64, store, make_store(buffer, {Expr(0)}, Expr(1)));
  const Stmt nest = make_for(i, 0, 4, ForKind::kSerial, make_for(j, 0, 16, ForKind::kSerial, guarded));
  EXPECT_EQ(print(simplify(nest)), "for i = 0, 4 {\n  for j = 0, 16 {\n    b[((i * 16) + j)] = j\n  }\n}\n");
  EXPECT_EQ(print(simplify(make_for(i, 3, 1, ForKind::kParallel, store))), "b[(j + 48)] = j\n");
  EXPECT_EQ(print(simplify(make_for(i, 3, 0, ForKind::kSerial, store))), "");
  EXPECT_EQ(print(simplify(make_if(bool_imm(false), store))), "");
  EXPECT_EQ(print(simplify(make_let(i, Expr(2), store))), "b[(j + 32)] = j\n");
}

class Soundness : public ::testing::TestWithParam<uint32_t> {};

// Simplified expressions, bounds and proofs against all points of a small domain.
TEST_P(Soundness, OnSmallDomains) {
  const Var x = make_var("x"), y = make_var("y"), z = make_var("z");
  BoundsContext context;
  context.bind_extent(x, 0, 7);
  context.bind(y, {-4, 5});
  context.bind_extent(z, Expr(x), min(Expr(4), 9 - Expr(x)));
  testing::RandomExpr random(GetParam(), {Expr(x), Expr(y), Expr(z)});
  for (int round = 0; round < 300; ++round) {
    const Expr expr = random.index(4), condition = random.condition(3), guard = random.condition(1);
    BoundsContext inside = context;
    inside.assume(guard);
    const Expr simple = simplify(expr, inside), simple_condition = simplify(condition, inside);
    const Interval bounds = inside.bounds(expr);
    const bool proven = inside.proves(condition);
    for (int64_t vx = 0; vx < 7; ++vx) {
      for (int64_t vy = -4; vy <= 5; ++vy) {
        for (int64_t vz = vx; vz < vx + std::min<int64_t>(4, 9 - vx); ++vz) {
          const testing::Environment at{{x.get(), vx}, {y.get(), vy}, {z.get(), vz}};
          if (testing::evaluate_at(guard, at) == 0) continue;
          const int64_t value = testing::evaluate_at(expr, at);
          ASSERT_EQ(testing::evaluate_at(simple, at), value) << print(expr) << " -> " << print(simple);
          ASSERT_TRUE(!bounds.low || *bounds.low <= value) << print(expr);
          ASSERT_TRUE(!bounds.high || value <= *bounds.high) << print(expr);
          const int64_t truth = testing::evaluate_at(condition, at);
          ASSERT_EQ(testing::evaluate_at(simple_condition, at), truth)
              << print(condition) << " under " << print(guard);
          ASSERT_TRUE(!proven || truth != 0) << print(condition);
        }
      }
    }
  }
}

TEST_P(Soundness, OfVectors) {
  const Var x = make_var("x");
  BoundsContext context;
  context.bind_extent(x, 0, 9);
  testing::RandomExpr random(GetParam(),
                             {broadcast(Expr(x), 4), ramp(Expr(x) * 4, 1, 4), ramp(3 - Expr(x), 5, 4)});
  for (int round = 0; round < 300; ++round) {
    const Expr expr = random.index(3) + broadcast(Expr(0), 4), condition = random.condition(2);
    const Expr simple = simplify(expr, context), simple_condition = simplify(condition, context);
    ASSERT_EQ(simple->type, expr->type);
    const Interval bounds = context.bounds(expr);
    const bool proven = context.proves(condition);
    for (int64_t vx = 0; vx < 9; ++vx) {
      const testing::Environment at{{x.get(), vx}};
      for (int lane = 0; lane < 4; ++lane) {
        const int64_t value = testing::evaluate_at(expr, at, lane);
        ASSERT_EQ(testing::evaluate_at(simple, at, lane), value) << print(expr) << " -> " << print(simple);
        ASSERT_TRUE((!bounds.low || *bounds.low <= value) && (!bounds.high || value <= *bounds.high))
            << print(expr);
        const int64_t truth = testing::evaluate_at(condition, at, lane);
        ASSERT_EQ(testing::evaluate_at(simple_condition, at, lane), truth) << print(condition);
        ASSERT_TRUE(!proven || truth != 0) << print(condition);
      }
    }
  }
}

// Of a quotient under the guard of a tail and finer terms under one of their own: nothing beyond the largest
// value is shown, and most of the largest values are.
TEST_P(Soundness, OfQuotientsBesideOtherTerms) {
  const Var outer = make_var("outer"), inner = make_var("inner"), row = make_var("row"),
            tap = make_var("tap");
  testing::RandomExpr random(GetParam(), {});
  int proven = 0;
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    const int64_t factor = 2 + random.below(5), count = factor + 1 + random.below(2 * factor),
                  divisor = 2 + random.below(4), rows = 2 + random.below(5), by = 1 + random.below(40);
    const int64_t out = random.below(factor / divisor + 1), line = 1 + random.below(5);
    const int64_t outers = (count + factor - 1) / factor;
    BoundsContext context;
    context.bind_extent(outer, 0, outers);
    context.bind_extent(inner, 0, factor);
    context.bind_extent(row, 0, rows);
    context.bind_extent(tap, 0, 3);
    const Expr guard = logical_and(Expr(outer) * factor + inner < count,
                                   logical_and(Expr(row) + tap >= 1, Expr(row) + tap <= rows));
    context.assume(guard);
    const Expr sum =
        (Expr(outer) * out + floordiv(Expr(outer) * (factor - out * divisor) + inner, divisor)) * by +
        (Expr(row) + tap) * line;
    const Expr index = random.below(2) == 0 ? sum : (floordiv(Expr(tap), 2) - sum) * 3;
    int64_t least = std::numeric_limits<int64_t>::max(), most = std::numeric_limits<int64_t>::min();
    for (int64_t at = 0; at < outers * factor * rows * 3; ++at) {
      const testing::Environment point{{outer.get(), at / (factor * rows * 3)},
                                       {inner.get(), at / (rows * 3) % factor},
                                       {row.get(), at / 3 % rows},
                                       {tap.get(), at % 3}};
      if (testing::evaluate_at(guard, point) == 0) continue;
      least = std::min(least, testing::evaluate_at(index, point));
      most = std::max(most, testing::evaluate_at(index, point));
    }
    ASSERT_FALSE(context.proves(index < most)) << print(index) << " under " << print(guard);
    ASSERT_FALSE(context.proves(index > least)) << print(index) << " under " << print(guard);
    if (context.proves(index <= most) && context.proves(index >= least)) ++proven;
  }
  EXPECT_GT(proven, kRounds / 3);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Soundness, ::testing::Range<uint32_t>(1, 13));

}  // namespace
}  // namespace tensormill::te
