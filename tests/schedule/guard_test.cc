// Sums over windows that reach into the padding: guards in place of selects, and loops cut so that no guard
// is left.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/schedule/harness.h"
#include "tests/schedule/programs.h"

namespace tensormill::schedule_test {
namespace {

using te::Expr;

/// out[i] = sum over r of x[i + r - pad] * w[r], taps outside left out.
te::Program window_program(int64_t size, int64_t taps, int64_t pad) {
  const te::Tensor x = te::placeholder("x", DType::kFloat32, Shape{size});
  const te::Tensor w = te::placeholder("w", DType::kFloat32, Shape{taps});
  const te::Tensor sums = te::reduce("sums", te::ReduceOp::kSum, Shape{size}, {taps},
                                     [&](const std::vector<Expr>& i, const std::vector<Expr>& r) {
                                       const Expr at = i[0] + r[0] - Expr(pad);
                                       const Expr inside = te::logical_and(at >= Expr(0), at < Expr(size));
                                       const Expr clamped = te::max(te::min(at, Expr(size - 1)), Expr(0));
                                       return te::select(inside, te::read(x, {clamped}) * te::read(w, {r[0]}),
                                                         te::float_imm(DType::kFloat32, 0));
                                     });
  const te::Tensor out = te::compute("out", Shape{size}, [&](const std::vector<Expr>& i) {
    return te::read(sums, i) + te::float_imm(DType::kFloat32, 1);
  });
  return {{x, w}, {out}};
}

TEST(Guard, IsForSumsOfSelectsWithZero) {
  const te::Program product = matmul_program(1, 4, 8, 16, false, false);
  EXPECT_THROW(schedule::apply(product, schedule::parse_schedule("guard s0"), "k"), Error);
  const te::Program window = window_program(9, 3, 1);
  EXPECT_THROW(schedule::apply(window, schedule::parse_schedule("guard s1"), "k"), Error);
  EXPECT_THROW(schedule::apply(window, schedule::parse_schedule("guard s0\nguard s0"), "k"), Error);
}

// Lanes of a register that the update leaves out keep what they have; lanes that are summed are one value.
TEST(Guard, HoldsForEachLane) {
  const te::Program window = window_program(16, 4, 1);
  for (const char* place :
       {"", "\ncompute_at s0 s1 i0.o", "\nvectorize s1 i0.i\ncompute_at s0 s1 i0.o\nstore_in s0 register"}) {
    const std::string lanes = "guard s0\nsplit s1 i0 8\nreorder s0 r0 i0\nvectorize s0 i0";
    check_schedule(window, schedule::parse_schedule(lanes + place), 2e-6, test_target(), 2e-6);
  }
  EXPECT_THROW(schedule::apply(window, schedule::parse_schedule("guard s0\nvectorize s0 r0"), "k"), Error);
}

// As pools of blocked tensors, where the condition is one of lanes.
TEST(Guard, HoldsForEachLaneOfRunningTotals) {
  for (const int64_t size : {2, 4, 16}) {
    const te::Tensor x = te::placeholder("x", DType::kFloat32, Shape{1, 2, 3, size});
    const te::Tensor totals =
        te::reduce("totals", te::ReduceOp::kSum, Shape{1, 2, 3, size}, {size},
                   [&](const std::vector<Expr>& i, const std::vector<Expr>& r) {
                     return te::select(r[0] <= i[3], te::read(x, {i[0], i[1], i[2], r[0]}),
                                       te::float_imm(DType::kFloat32, 0));
                   });
    check_program({{x}, {totals}}, 2e-6, test_target(), 2e-6);
  }
}

TEST(Guard, ComputesWhatTheSelectDoes) {
  for (const int64_t pad : {0, 1, 2, 4}) {
    for (const char* text : {"guard s0", "guard s0\nsplit s0 r0 2", "guard s0\ncompute_at s0 s1 i0",
                             "guard s0\nsplit s1 i0 4\ncompute_at s0 s1 i0.o\nreorder s0 r0 i0",
                             "guard s0\nsplit s0 r0 2\nrfactor s0 r0.i"}) {
      check_schedule(window_program(13, 5, pad), schedule::parse_schedule(text), 2e-6, test_target(), 2e-6);
    }
  }
}

/// The tile's taps are known in every part of the image: neither conditions nor clamped indices are left.
TEST(Guard, IsGoneWhereLoopsAreCutAtTheBorder) {
  const std::string tile =
      "guard s0\nsplit s1 i0 4\nunroll s1 i0.i\nsplit s0 i0 4\nreorder s0 i0.o r0 i0.i\nunroll s0 r0\n"
      "unroll s0 i0.i\ncompute_at s0 s1 i0.o\nstore_in s0 register";
  for (const int64_t size : {8, 12, 32, 18}) {
    const Checked checked =
        check_schedule(window_program(size, 3, 1), schedule::parse_schedule(tile), 2e-6, test_target(), 2e-6);
    for (const char* word : {"if", "select", "min(", "max("}) {
      EXPECT_EQ(checked.lowered.find(word), std::string::npos) << size << ": " << checked.lowered;
    }
  }
}

}  // namespace
}  // namespace tensormill::schedule_test
