/// Calls the function of a host step on buffers. Thread-safety: as the function.
#pragma once

#include <vector>

#include "runtime/host_ops/registry.h"
#include "runtime/package/exec_plan.h"

namespace tensormill::exec {

/// `buffers`: the addresses of the step's arguments. `read`: its attributes, or null. `common_pictures`: as
/// RunOptions. `growing`: of the executor.
void run_host_step(const package::ExecPlan& plan, const package::Step& step, host_ops::HostFunction function,
                   const std::vector<void*>& buffers, const host_ops::ReadAttributes* read,
                   bool common_pictures, host_ops::GrowingBuffers& growing);

}  // namespace tensormill::exec
