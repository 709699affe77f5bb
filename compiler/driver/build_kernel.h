/// One kernel from its program and a schedule to machine code: what a compile does for each kernel, and the
/// tuner for each candidate. Thread-safety: pure functions; a backend may be shared.
#pragma once

#include <string>

#include "compiler/codegen/backend.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/plan_builder.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"

namespace tensormill::driver {

struct BuiltKernel {
  codegen::Object object;
  plan::KernelWorkspace workspace;
  te::Function loops;     ///< as the schedule built them
  te::Function function;  ///< as code was generated from it
};

/// The loops of `steps` with the kernel's alias classes. Throws Error(kInvalidRecords) naming the first step
/// that does not apply.
te::Function build_loops(const plan::Kernel& kernel, const schedule::Schedule& steps);

/// Lowers and compiles loops. Throws InternalError for bugs of the phases.
BuiltKernel build_from_loops(te::Function loops, const target::Target& target,
                             const codegen::Backend& backend, const codegen::EmitOptions& emit = {});

/// Lowers and compiles. Throws as build_loops, and InternalError for bugs of later phases.
BuiltKernel build_kernel(const plan::Kernel& kernel, const schedule::Schedule& steps,
                         const target::Target& target, const codegen::Backend& backend,
                         const codegen::EmitOptions& emit = {});

}  // namespace tensormill::driver
