/// Small tasks, on one core of this machine or of a named one. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "compiler/target/target.h"
#include "compiler/tune/task.h"

namespace tensormill::tune_test {

/// This machine with one core.
target::Target host_target();
/// One core with vectors of so many floats (4, 8 or 16), whatever this machine has: for what is not run on
/// it.
target::Target target_of_lanes(int lanes);
/// The tasks of a graph in text form.
std::vector<tune::Task> tasks_of(std::string_view graph, const target::Target& target = host_target());
/// relu(x w), 24 x 40 times 40 x 48.
std::vector<tune::Task> matmul_tasks(const target::Target& target = host_target());

}  // namespace tensormill::tune_test
