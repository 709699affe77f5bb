#include <gtest/gtest.h>

#include <random>

#include "compiler/lower/lower.h"
#include "compiler/schedule/schedule.h"
#include "compiler/te/interpret.h"
#include "compiler/te/text.h"
#include "tests/codegen/support.h"
#include "tests/te/random_function.h"

namespace tensormill::codegen_test {
namespace {

using te::Expr;
using te::ExprOp;

Tensor seeded(DType dtype, const Shape& shape, uint64_t seed) {
  Tensor tensor(dtype, shape);
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = static_cast<double>(random() % 4096) / 512.0 - 4.0;
    tensor.set_element(i, is_float(dtype) ? value : std::floor(value * 8));
  }
  return tensor;
}

/// The lowered function gives the same bits in the interpreter and compiled, with one and with several
/// workers.
void expect_same_bits(const te::Function& lowered, const std::vector<Tensor>& arguments,
                      const target::Target& target, const std::string& what) {
  std::vector<Tensor> expected;
  for (const Tensor& tensor : arguments) expected.push_back(tensor.clone());
  const te::InterpretResult wanted = te::interpret(lowered, expected);
  const Kernel kernel(lowered, target);
  for (const int workers : {1, 3}) {
    std::vector<Tensor> actual;
    for (const Tensor& tensor : arguments) actual.push_back(tensor.clone());
    ASSERT_EQ(kernel.run(actual, {}, workers).code, wanted.code) << what;
    for (size_t i = 0; i < actual.size(); ++i) {
      ASSERT_EQ(difference(actual[i], expected[i]), "")
          << what << " on " << target.cpu << ", parameter " << i << "\n"
          << te::print(lowered);
    }
  }
}

void check_program(const te::Program& program) {
  std::vector<Tensor> arguments;
  for (const te::Tensor& input : program.inputs) {
    arguments.push_back(seeded(input->dtypes[0], input->constant_shape(), arguments.size() + 1));
  }
  for (const te::Tensor& output : program.outputs) {
    arguments.push_back(Tensor::zeros(output->dtypes[0], output->constant_shape()));
  }
  for (const target::Target& target : runnable_targets()) {
    const schedule::Schedule steps = schedule::default_schedule(program, target);
    const te::Function lowered = lower::lower(schedule::apply(program, steps, "kernel"), target);
    expect_same_bits(lowered, arguments, target, schedule::print(steps));
  }
}

TEST(Lowered, RandomFunctionsEqualTheInterpreter) {
  const target::Target own = host();
  const target::Target base = own.is_x86() ? parse("llvm -mcpu=x86-64") : own;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    const te::Function function = te::testing::RandomFunction(seed).make();
    std::vector<Tensor> arguments;
    for (const te::Parameter& parameter : function.parameters) {
      arguments.push_back(seeded(parameter.buffer->dtype, {te::testing::RandomFunction::kExtent}, seed + 7));
    }
    const target::Target& target = seed % 3 == 0 ? base : own;
    expect_same_bits(lower::lower(function, target), arguments, target, "seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
  }
}

TEST(Lowered, MatmulOfOddExtents) {
  for (const auto& [m, n, k] :
       {std::tuple<int64_t, int64_t, int64_t>{7, 13, 5}, {1, 64, 33}, {16, 32, 64}, {3, 1, 0}}) {
    const te::Tensor a = te::placeholder("a", DType::kFloat32, Shape{m, k});
    const te::Tensor b = te::placeholder("b", DType::kFloat32, Shape{k, n});
    const te::Tensor product =
        te::reduce("product", te::ReduceOp::kSum, Shape{m, n}, {k}, [&](const auto& i, const auto& r) {
          return te::read(a, {i[0], r[0]}) * te::read(b, {r[0], i[1]});
        });
    const te::Tensor out = te::compute("out", Shape{m, n}, [&](const std::vector<Expr>& i) {
      return te::max(te::read(product, i), te::float_imm(DType::kFloat32, 0));
    });
    check_program({{a, b}, {out}});
  }
}

TEST(Lowered, PaddedConvolution) {
  const int64_t channels = 3, filters = 5, size = 11;
  const te::Tensor x = te::placeholder("x", DType::kFloat32, Shape{1, channels, size, size});
  const te::Tensor w = te::placeholder("w", DType::kFloat32, Shape{filters, channels, 3, 3});
  const te::Tensor padded =
      te::compute("padded", Shape{1, channels, size + 2, size + 2}, [&](const std::vector<Expr>& i) {
        const auto inside = [&](const Expr& at) {
          return te::logical_and(at >= Expr(1), at < Expr(size + 1));
        };
        const auto clamped = [&](const Expr& at) {
          return te::min(te::max(at - Expr(1), Expr(0)), Expr(size - 1));
        };
        return te::select(te::logical_and(inside(i[2]), inside(i[3])),
                          te::read(x, {i[0], i[1], clamped(i[2]), clamped(i[3])}),
                          te::float_imm(DType::kFloat32, 0));
      });
  for (const int64_t stride : {1, 2}) {
    const int64_t out_size = (size + 2 - 3) / stride + 1;
    const te::Tensor out = te::reduce(
        "out", te::ReduceOp::kSum, Shape{1, filters, out_size, out_size}, {channels, 3, 3},
        [&](const auto& i, const auto& r) {
          return te::read(padded, {i[0], r[0], i[2] * Expr(stride) + r[1], i[3] * Expr(stride) + r[2]}) *
                 te::read(w, {i[1], r[0], r[1], r[2]});
        });
    check_program({{x, w}, {out}});
  }
}

TEST(Lowered, GatherChecksItsIndices) {
  const te::Tensor table = te::placeholder("table", DType::kFloat32, Shape{7, 9});
  const te::Tensor rows = te::placeholder("rows", DType::kInt64, Shape{13});
  const te::Tensor out = te::compute("out", Shape{13, 9}, [&](const std::vector<Expr>& i) {
    return te::read(table, {te::check_index(te::read(rows, {i[0]}), Expr(7)), i[1]});
  });
  const te::Program program = {{table, rows}, {out}};
  for (const target::Target& target : runnable_targets()) {
    const schedule::Schedule steps = schedule::default_schedule(program, target);
    const te::Function lowered = lower::lower(schedule::apply(program, steps, "gather"), target);
    std::vector<Tensor> arguments = {seeded(DType::kFloat32, {7, 9}, 1), Tensor::zeros(DType::kInt64, {13}),
                                     Tensor::zeros(DType::kFloat32, {13, 9})};
    for (int64_t i = 0; i < 13; ++i) arguments[1].set_element_int(i, i % 7);
    expect_same_bits(lowered, arguments, target, "gather");
    const Kernel kernel(lowered, target);
    for (const int64_t bad : {int64_t{7}, int64_t{-1}, int64_t{1} << 62}) {
      arguments[1].set_element_int(12, bad);
      const RunResult result = kernel.run(arguments, {}, 2);
      EXPECT_EQ(result.code, TM_INDEX_OUT_OF_RANGE);
      EXPECT_EQ(result.error_index, bad);
    }
  }
}

}  // namespace
}  // namespace tensormill::codegen_test
