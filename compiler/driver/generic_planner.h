/// Tries whether a model with symbolic extents has one plan for all of them, and keeps the plans that it made
/// on the way, so that the package is built from them without planning again. Thread-safety: none; a planner
/// and the symbol tables of the models that it has seen belong to one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/driver/symbolic.h"
#include "compiler/ir/variants.h"
#include "compiler/plan/generic_plan.h"

namespace tensormill::driver {

/// A model after the passes of generic plans, and its plan.
struct PlannedModel {
  ir::Graph graph;
  PlanSymbols symbols;
  plan::GenericModel model;  ///< its kernels stay in their buffers (check_bounds)
};

/// Whether one plan serves all shapes that the model takes but few: it does not assume that two extents are
/// equal, unless the model demands it. What passes and kernels assume becomes guards of the model's symbol
/// table. `reason`: receives why not; may be null.
bool takes_symbolic(const ir::SymbolicModel& model, std::string* reason = nullptr);

class GenericPlanner {
public:
  explicit GenericPlanner(target::Target target);
  /// As takes_symbolic; stores the plan that it made.
  bool takes(const ir::SymbolicModel& model, std::string* reason = nullptr);
  /// The stored plan of the model, if it was made with equal options (it is moved out, so only once), or one
  /// that is made now. `options`: of the planner's target. `free_dims`: their names in the package.
  /// `layout_log`: receives what the desired layout was applied to; may be null. Throws
  /// Error(kNotSupported) where there is no plan.
  PlannedModel plan(const ir::SymbolicModel& model, const std::vector<std::string>& free_dims,
                    const CompileOptions& options, passes::LayoutLog* layout_log);

private:
  struct StoredPlan {
    std::shared_ptr<const ir::SymbolTable> table;  ///< of the model
    std::vector<std::string> free_dims;            ///< that the plan names
    PlannedModel planned;
  };

  CompileOptions options_;  ///< the default ones, for the target
  std::vector<StoredPlan> stored_;
};

}  // namespace tensormill::driver
