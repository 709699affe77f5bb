/// What the schedule tests share: run a program through schedule, replay and every lowering pass, and compare
/// with its definition. Thread-safety: none needed.
#pragma once

#include <string>
#include <vector>

#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"
#include "compiler/te/tensor_expr.h"
#include "runtime/base/tensor.h"

namespace tensormill::schedule_test {

/// A target without relation to the host. vector_bits 512 has 32 registers, others 16.
target::Target test_target(int vector_bits = 512, bool fma = true, int cores = 2);

/// Seeded values: floats in [-1, 1), small integers, bools.
Tensor seeded(DType dtype, const Shape& shape, uint64_t seed);

struct Checked {
  schedule::Schedule schedule;
  std::string loops;    ///< text after apply
  std::string lowered;  ///< text after the last pass
};

/// Default-schedules the program, parses the schedule's text back, replays it (equal loop IR), and interprets
/// the function before and after each pass: loops against the definition within `tolerance` x the largest
/// value, each pass bit-equal to the one before (legalize within `math_tolerance`). `inputs` seeded where
/// empty.
Checked check_program(const te::Program& program, double tolerance = 0,
                      const target::Target& target = test_target(), double math_tolerance = 0,
                      std::vector<Tensor> inputs = {});
/// As check_program with a given schedule.
Checked check_schedule(const te::Program& program, const schedule::Schedule& schedule, double tolerance,
                       const target::Target& target = test_target(), double math_tolerance = 0,
                       std::vector<Tensor> inputs = {});

}  // namespace tensormill::schedule_test
