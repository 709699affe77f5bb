/// Which models that were imported with symbols have a plan for all extents, and that plan: what is made to
/// see whether there is one is what the package is made of. Thread-safety: none; a planner and the symbol
/// tables of the models that it has seen belong to one thread.
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

/// Whether a plan of the model serves all that the model takes, but for few extents: no two extents are taken
/// for equal that the model does not demand to be. What passes and kernels take for granted is among the
/// guards of the graph then. `reason`: receives why not; null: nothing does.
bool takes_symbolic(const ir::SymbolicModel& model, std::string* reason = nullptr);

class GenericPlanner {
public:
  explicit GenericPlanner(target::Target target);
  /// As takes_symbolic; stores the plan that it made.
  bool takes(const ir::SymbolicModel& model, std::string* reason = nullptr);
  /// The stored plan of the model where it is of such options, which is handed out once; or one that is made
  /// now. `options`: of the planner's target. `free_dims`: the names that the package has of
  /// them. `layout_log`: receives what the desired layout was applied to; null: nothing does. Throws
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
