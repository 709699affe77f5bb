/// Small tasks on this machine as one core. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "compiler/target/target.h"
#include "compiler/tune/task.h"

namespace tensormill::tune_test {

/// This machine with one core.
target::Target host_target();
/// The tasks of a graph in text form.
std::vector<tune::Task> tasks_of(std::string_view graph);
/// relu(x w), 24 x 40 times 40 x 48.
std::vector<tune::Task> matmul_tasks();

}  // namespace tensormill::tune_test
