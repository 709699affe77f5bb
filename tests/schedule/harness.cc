#include "tests/schedule/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler/lower/lower.h"
#include "compiler/te/interpret.h"
#include "compiler/te/text.h"

namespace tensormill::schedule_test {

target::Target test_target(int vector_bits, bool fma, int cores) {
  target::Target target;
  target.triple = "x86_64-linux-gnu";
  target.cpu = "generic";
  target.facts.vector_bits = vector_bits;
  target.facts.vector_registers = vector_bits == 512 ? 32 : 16;
  target.facts.fma = fma;
  target.facts.num_cores = cores;
  return target;
}

Tensor seeded(DType dtype, const Shape& shape, uint64_t seed) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const double unit = static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
    if (is_float(dtype)) {
      tensor.set_element(i, unit * 2 - 1);
    } else {
      tensor.set_element_int(i, dtype == DType::kBool ? unit < 0.5 : static_cast<int64_t>(unit * 7));
    }
  }
  return tensor;
}

namespace {

void expect_close(const Tensor& got, const Tensor& want, double tolerance, const std::string& where) {
  ASSERT_EQ(got.shape(), want.shape()) << where;
  double largest = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double value = std::abs(want.element_as_double(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double a = got.element_as_double(i), b = want.element_as_double(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b && (a != 0 || tolerance > 0 || std::signbit(a) == std::signbit(b))) continue;
    ASSERT_LE(std::abs(a - b), tolerance * largest)
        << where << ": element " << i << " is " << a << ", expected " << b;
  }
}

std::vector<Tensor> run(const te::Function& function, const te::Program& program,
                        const std::vector<Tensor>& inputs) {
  std::vector<Tensor> arguments = inputs;
  for (const te::Tensor& output : program.outputs) {
    Tensor tensor(output->dtypes[0], output->constant_shape());
    if (tensor.num_bytes() > 0) std::memset(tensor.data(), 0xA5, tensor.num_bytes());
    arguments.push_back(tensor);
  }
  const te::InterpretResult result = te::interpret(function, arguments, {}, 7);
  EXPECT_EQ(result.code, 0);
  return {arguments.begin() + static_cast<ptrdiff_t>(inputs.size()), arguments.end()};
}

}  // namespace

Checked check_schedule(const te::Program& program, const schedule::Schedule& schedule, double tolerance,
                       const target::Target& target, double math_tolerance, std::vector<Tensor> inputs) {
  Checked checked;
  checked.schedule = schedule;
  for (size_t i = inputs.size(); i < program.inputs.size(); ++i) {
    inputs.push_back(seeded(program.inputs[i]->dtypes[0], program.inputs[i]->constant_shape(), i + 1));
  }
  const std::string text = schedule::print(schedule);
  SCOPED_TRACE(text);
  const te::Function loops = schedule::apply(program, schedule, "kernel");
  checked.loops = te::print(loops);
  EXPECT_EQ(schedule::parse_schedule(text), schedule);
  EXPECT_EQ(te::print(schedule::apply(program, schedule::parse_schedule(text), "kernel")), checked.loops);
  EXPECT_EQ(te::print(te::parse_function(checked.loops)), checked.loops);
  const std::vector<Tensor> expected = te::evaluate(program, inputs);
  std::vector<Tensor> before;
  lower::lower(loops, target, [&](std::string_view pass, const te::Function& function) {
    if (::testing::Test::HasFatalFailure()) return;
    checked.lowered = te::print(function);
    const std::vector<Tensor> got = run(function, program, inputs);
    for (size_t i = 0; i < got.size(); ++i) {
      const bool legalized = pass == "legalize";
      if (before.empty()) {
        expect_close(got[i], expected[i], tolerance,
                     "loops, output " + std::to_string(i) + "\n" + checked.loops);
      } else {
        expect_close(got[i], before[i], legalized ? math_tolerance : 0,
                     std::string(pass) + ", output " + std::to_string(i) + "\n" + checked.lowered);
      }
    }
    before = got;
  });
  return checked;
}

Checked check_program(const te::Program& program, double tolerance, const target::Target& target,
                      double math_tolerance, std::vector<Tensor> inputs) {
  return check_schedule(program, schedule::default_schedule(program, target), tolerance, target,
                        math_tolerance, std::move(inputs));
}

}  // namespace tensormill::schedule_test
