/// The generic plan of a package with free dims, compiled and checked. Thread-safety: pure functions.
#pragma once

#include <functional>
#include <vector>

#include "compiler/codegen/backend.h"
#include "compiler/driver/compile.h"
#include "compiler/plan/generic_plan.h"

namespace tensormill::driver {

struct CompiledGeneric {
  /// The generic plan, and those of shapes that it does not take; `step_kernels` name the kernels here.
  std::vector<plan::GenericModel> models;
  std::vector<plan::GenericKernel> kernels;  ///< of all models, each once
  std::vector<codegen::Object> objects;      ///< by kernel
  std::vector<te::Function> functions;       ///< as code was generated from them
  std::string refused;                       ///< why a plan of special shapes was not made; or ""
  bool is_complete = false;                  ///< every shape at which the model was looked at has a plan
};

/// Generalizes the samples' graphs (which have at least two), compiles the kernels and compares each node
/// that `verifies` with its reference at two samples. Throws Error(kNotSupported) saying what cannot be
/// generalized, Error(kWrongAnswer).
CompiledGeneric compile_generic(const ir::Variants& variants, const CompileOptions& options,
                                const codegen::Backend& backend,
                                const std::function<bool(const plan::Kernel&)>& verifies);

}  // namespace tensormill::driver
