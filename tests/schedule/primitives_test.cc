// Steps one by one: what they accept, what they refuse, and that hand-written lists compute what the program
// says.
#include <gtest/gtest.h>

#include "compiler/te/interpret.h"
#include "compiler/te/text.h"
#include "compiler/te/verify.h"
#include "runtime/base/error.h"
#include "tests/schedule/harness.h"
#include "tests/schedule/programs.h"

namespace tensormill::schedule_test {
namespace {

TEST(Steps, AreRefusedWithTheStepInTheMessage) {
  const te::Program program = matmul_program(1, 4, 8, 16, false, true);
  for (const char* text :
       {"split s9 i0 4", "split s0 i9 4", "split s0 i0 0", "split s0 i0 x", "split s0 i0", "fuse s0 i0 i2",
        "fuse s0 i2 r0", "compute_inline s0", "compute_inline s1", "parallel s0 i1", "vectorize s0 i1",
        "rfactor s1 i0", "compute_at s1 s0 i0", "compute_at s0 s1 i9", "cache_read p9 s0",
        "storage_layout s1 i0 2", "store_in s0 register", "compute_at s0 s1 i2\nvectorize s1 i9"}) {
    try {
      schedule::apply(program, schedule::parse_schedule(text), "k");
      ADD_FAILURE() << text << " is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidRecords);
      EXPECT_NE(error.message().find("step '"), std::string::npos) << error.message();
    }
  }
  EXPECT_THROW(schedule::parse_schedule("split s0 i0 4\nfly s0"), Error);
}

TEST(Steps, ComputeWhatTheProgramSays) {
  const te::Program product = matmul_program(2, 13, 17, 7, false, true);
  for (const char* text :
       {"", "split s0 i1 5\nsplit s0 r0 3\nreorder s0 r0.o i1.o i1.i r0.i",
        "tile s1 i1 i2 4 8\ncompute_at s0 s1 i2.o", "compute_at s0 s1 i0",
        "cache_read p1 s0\nstorage_layout p1.s0 i2 3",
        "cache_write s0\nfuse s0 i0 i1\ncompute_at s0.c s0 i0+i1",
        "split s0 r0 4\nrfactor s0 r0.i\ncompute_at s0 s1 i1\ncompute_at s0.rf s0 i2",
        "fuse s1 i0 i1\nsplit s1 i0+i1 5\nparallel s1 i0+i1.o\ncompute_at s0 s1 i0+i1.i"}) {
    check_schedule(product, schedule::parse_schedule(text), 2e-6, test_target(), 2e-6);
  }
  const te::Program conv = conv_program({1, 3, 9, 11, 5, 3, 2, 1, 1}, true);
  for (const char* text : {"compute_inline s0", "compute_inline s2\ncompute_at s1 s3 i2\ncompute_at s0 s1 r0",
                           "storage_layout s0 i3 2\nsplit s3 i3 4\nvectorize s3 i3.i\ncompute_inline s2"}) {
    check_schedule(conv, schedule::parse_schedule(text), 2e-6, test_target(), 2e-6);
  }
}

/// Twice x [H, W] from row 1 and column 2 on, 7 around it, as [H + 2, W + 3].
te::Program pad_program(const te::Expr& height, const te::Expr& width) {
  using te::Expr;
  const te::Tensor x = te::placeholder("x", DType::kFloat32, {height, width});
  const te::Tensor out = te::compute("out", {height + Expr(2), width + Expr(3)}, [&](const auto& at) {
    const auto clamped = [](const Expr& index, const Expr& extent) {
      return te::max(te::min(index, extent - Expr(1)), Expr(0));
    };
    const Expr row = at[0] - Expr(1), column = at[1] - Expr(2);
    const Expr inside = te::logical_and(te::logical_and(row >= Expr(0), row < height),
                                        te::logical_and(column >= Expr(0), column < width));
    const Expr value = te::read(x, {clamped(row, height), clamped(column, width)});
    return te::select(inside, value * te::float_imm(DType::kFloat32, 2), te::float_imm(DType::kFloat32, 7));
  });
  return {{x}, {out}};
}

class UnknownExtents : public testing::Test {
protected:
  te::Function loops_by(const std::string& steps) const {
    const te::Program program = pad_program(te::Expr(height_), te::Expr(width_));
    return schedule::apply(
        program, schedule::parse_schedule(steps), "k",
        {{height_, width_}, {te::Expr(height_) >= te::Expr(1), te::Expr(width_) >= te::Expr(1)}});
  }

  const te::Var height_ = te::make_var("H"), width_ = te::make_var("W");
};

TEST_F(UnknownExtents, StepsComputeWhatTheProgramSays) {
  for (const char* steps :
       {"", "parallel s0 i0", "split s0 i1 8", "split s0 i1 8\nvectorize s0 i1.i",
        "split s0 i0 4 partition\nunroll s0 i0.i", "split s0 i0 4\nfuse s0 i0.o i0.i", "specialize s0 i1",
        "split s0 i1 8 partition\nvectorize s0 i1.i\nparallel s0 i0\nspecialize s0 i1",
        "split s0 i0 4\nsplit s0 i1 8 partition\nvectorize s0 i1.i\nparallel s0 i0.o\nspecialize s0 i1"}) {
    const te::Function loops = loops_by(steps);
    te::verify(loops, te::Level::kLoops);
    for (const int64_t width : {1, 2, 5, 7, 8, 13}) {
      const int64_t height = 1 + width % 5;
      const te::Program known = pad_program(te::Expr(height), te::Expr(width));
      std::vector<Tensor> arguments = {seeded(DType::kFloat32, {height, width}, 1)};
      const Tensor expected = te::evaluate(known, arguments)[0];
      arguments.emplace_back(DType::kFloat32, expected.shape());
      ASSERT_EQ(te::interpret(loops, arguments, {height, width}, 3).code, 0) << steps;
      for (int64_t i = 0; i < expected.num_elements(); ++i)
        ASSERT_EQ(arguments[1].element_as_double(i), expected.element_as_double(i))
            << steps << " at " << width;
    }
  }
}

TEST_F(UnknownExtents, PartsOfARowAskAndClampNothing) {
  const std::string apart = te::print(loops_by("specialize s0 i1"));
  EXPECT_EQ(apart.find("select("), std::string::npos) << apart;
  EXPECT_EQ(apart.find("max("), std::string::npos) << apart;
}

TEST_F(UnknownExtents, AreNoVectorsAndNoInnerParts) {
  for (const char* steps :
       {"vectorize s0 i1", "unroll s0 i1", "fuse s0 i0 i1", "specialize s0 i0", "specialize s0 r0",
        "split s0 i1 8 mask", "parallel s0 i0\nfuse s0 i0 i1", "cache_write s0", "cache_read p0 s0"})
    EXPECT_THROW(loops_by(steps), Error) << steps;
}

}  // namespace
}  // namespace tensormill::schedule_test
