/// The generic plan of a package with free dims, compiled and checked. Thread-safety: pure functions.
#pragma once

#include <functional>
#include <vector>

#include "compiler/codegen/backend.h"
#include "compiler/driver/compile.h"
#include "compiler/plan/generic_plan.h"

namespace tensormill::driver {

struct CompiledGeneric {
  plan::GenericModel model;
  std::vector<codegen::Object> objects;  ///< by kernel of the model
  std::vector<te::Function> functions;   ///< as code was generated from them
};

/// Generalizes the samples' graphs (which have at least two), compiles the kernels and compares each node
/// that `verifies` with its reference at two samples. Throws Error(kNotSupported) saying what cannot be
/// generalized, Error(kWrongAnswer).
CompiledGeneric compile_generic(const ir::Variants& variants, const CompileOptions& options,
                                const codegen::Backend& backend,
                                const std::function<bool(const plan::Kernel&)>& verifies);

}  // namespace tensormill::driver
