/// The generic plan of a package with free dims, compiled and checked. Thread-safety: pure functions.
#pragma once

#include <functional>
#include <vector>

#include "compiler/codegen/backend.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/generic_planner.h"
#include "compiler/plan/generic_plan.h"

namespace tensormill::driver {

/// What tuning records say of one kernel.
struct GenericTuning {
  std::string record = {};  ///< that its loops are by; "" for the rule's
  std::string reason = {};  ///< why a record that names it is not taken
  std::optional<RefusedRecord> refused = {};
};

struct CompiledGeneric {
  /// The generic plan, and those of shapes that it does not take; `step_kernels` name the kernels here.
  std::vector<plan::GenericModel> models;
  std::vector<plan::GenericKernel> kernels;    ///< of all models, each once
  std::vector<codegen::Object> objects;        ///< by kernel
  std::vector<te::Function> functions;         ///< as code was generated from them
  std::vector<GenericTuning> tuning;           ///< by kernel
  std::vector<std::vector<plan::Tail>> tails;  ///< likewise
  passes::LayoutLog layout;                    ///< of the first model
  bool is_complete = false;                    ///< every shape that the model takes has a plan
};

/// What the plan of a package is compiled with. `verifies`: whether a kernel is compared with its reference.
struct GenericHooks {
  std::function<bool(const plan::Kernel&)> verifies;
  /// Compiles kernels of constant extents, each once in a package: what each asks for. `graph` has their
  /// constants.
  std::function<std::vector<plan::KernelWorkspace>(const std::vector<plan::FixedKernel>& kernels,
                                                   const ir::Graph& graph)>
      compile_fixed;
};

/// Whether there is nothing else that a package could be made of: of numbers of a run there is no plan at
/// their hints.
bool needs_generic(const ir::Variants& variants);

/// Plans the symbolic models of `variants` (which has one), compiles the kernels and compares each node with
/// its reference at a few shapes. What is needed is planned at the level at which it was
/// found that it can be. `planner`: may have plans of the models. Throws Error(kNotSupported) saying what has
/// no such plan, Error(kWrongAnswer).
CompiledGeneric compile_generic(const ir::Variants& variants, const CompileOptions& options,
                                GenericPlanner& planner, const codegen::Backend& backend,
                                const GenericHooks& hooks);

}  // namespace tensormill::driver
