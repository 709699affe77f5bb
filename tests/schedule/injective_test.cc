#include <gtest/gtest.h>

#include "tests/schedule/harness.h"

namespace tensormill::schedule_test {
namespace {

using te::Expr;

class InjectiveShapes : public ::testing::TestWithParam<Shape> {};

TEST_P(InjectiveShapes, AddsAndScales) {
  const Shape shape = GetParam();
  const te::Tensor a = te::placeholder("a", DType::kFloat32, shape);
  const te::Tensor b = te::placeholder("b", DType::kFloat32, shape);
  const te::Tensor sum =
      te::compute("sum", shape, [&](const std::vector<Expr>& i) { return te::read(a, i) + te::read(b, i); });
  const te::Tensor out = te::compute("out", shape, [&](const std::vector<Expr>& i) {
    return te::max(te::read(sum, i) * te::float_imm(DType::kFloat32, 0.5),
                   te::float_imm(DType::kFloat32, 0)) +
           te::read(sum, i);
  });
  check_program({{a, b}, {out}});
}

TEST_P(InjectiveShapes, BroadcastsAlongTheLastAxis) {
  const Shape shape = GetParam();
  if (shape.empty()) return;
  const te::Tensor a = te::placeholder("a", DType::kFloat32, shape);
  const te::Tensor b = te::placeholder("b", DType::kFloat32, Shape{shape.back()});
  const te::Tensor out = te::compute(
      "out", shape, [&](const std::vector<Expr>& i) { return te::read(a, i) - te::read(b, {i.back()}); });
  check_program({{a, b}, {out}});
}

TEST_P(InjectiveShapes, Transposes) {
  const Shape shape = GetParam();
  const Shape turned(shape.rbegin(), shape.rend());
  const te::Tensor a = te::placeholder("a", DType::kInt64, shape);
  const te::Tensor out = te::compute("out", turned, [&](const std::vector<Expr>& i) {
    return te::read(a, {i.rbegin(), i.rend()});
  });
  check_program({{a}, {out}});
}

TEST(Injective, ATransposeReadsEachLineWhole) {
  const Shape shape = {64, 48};
  const te::Tensor a = te::placeholder("a", DType::kFloat32, Shape{48, 64});
  const te::Tensor out = te::compute("out", shape, [&](const std::vector<Expr>& i) {
    return te::read(a, {i[1], i[0]});
  });
  target::Target target;
  target.facts.vector_bits = 256;
  const schedule::Schedule steps = schedule::default_schedule({{a}, {out}}, target);
  EXPECT_EQ(schedule::print(steps),
            "split s0 i1 8\nsplit s0 i0 16\nreorder s0 i0.o i1.o i0.i i1.i\nvectorize s0 i1.i\n"
            "fuse s0 i0.o i1.o\n");
}

INSTANTIATE_TEST_SUITE_P(Extents, InjectiveShapes,
                         ::testing::Values(Shape{}, Shape{1}, Shape{7}, Shape{16}, Shape{0}, Shape{3, 0},
                                           Shape{2, 3, 7}, Shape{1, 1, 13}, Shape{5, 1, 1}, Shape{4, 8, 17},
                                           Shape{2, 3, 64}, Shape{37, 41, 29}, Shape{1, 257}));

}  // namespace
}  // namespace tensormill::schedule_test
