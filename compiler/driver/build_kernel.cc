#include "compiler/driver/build_kernel.h"

#include <utility>

#include "compiler/lower/lower.h"
#include "compiler/plan/in_place.h"
#include "compiler/plan/sharing.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

te::Function build_loops(const plan::Kernel& kernel, const schedule::Schedule& steps) {
  te::Function loops = schedule::apply(kernel.program, steps, kernel.symbol);
  loops.aliases =
      plan::alias_classes(kernel.program.inputs.size(), kernel.program.outputs.size(), kernel.in_place);
  return loops;
}

BuiltKernel build_from_loops(te::Function loops, const target::Target& target,
                             const codegen::Backend& backend, const codegen::EmitOptions& emit) {
  BuiltKernel built;
  built.loops = std::move(loops);
  built.function = lower::lower(built.loops, target);
  built.workspace = {built.function.shared_workspace_bytes, built.function.worker_workspace_bytes,
                     plan::sharing_of(built.function)};
  built.object = backend.emit(built.function, target, emit);
  return built;
}

BuiltKernel build_kernel(const plan::Kernel& kernel, const schedule::Schedule& steps,
                         const target::Target& target, const codegen::Backend& backend,
                         const codegen::EmitOptions& emit) {
  return build_from_loops(build_loops(kernel, steps), target, backend, emit);
}

}  // namespace tensormill::driver
