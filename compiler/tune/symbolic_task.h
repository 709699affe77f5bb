/// Kernels of free extents as tasks: measured at some extents, and compared with the operators' reference
/// there, at extents of 0 and 1, and around each tile of their loops. Thread-safety: the tasks of one model
/// belong to one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "compiler/ir/variants.h"
#include "compiler/passes/layouts/desired_layout.h"
#include "compiler/plan/generic_plan.h"
#include "compiler/target/target.h"
#include "compiler/tune/workload.h"
#include "runtime/base/json_fwd.h"
#include "runtime/base/shape_buckets.h"

namespace tensormill::tune {

struct Task;

struct SymbolicOptions {
  int opt_level = 3;
  std::optional<passes::DesiredLayout> layout = {};
  /// Values of the free dims at which kernels are measured; none: those that the model was imported with.
  std::vector<std::vector<int64_t>> extents = {};
  /// Whether extents that no plan takes are left out; else they are an error.
  bool may_leave_out = false;
  /// Whether this machine runs the target's code: what a node computes before a kernel, and behind it, is
  /// computed here. Without it there are no tasks of nodes that are several kernels.
  bool runs_here = true;
  /// Of a package's tasks: whether kernels of constant extents are there that only records choose, too.
  bool algorithms = true;
};

/// A model's plan for all extents with what its tasks have in common.
class SymbolicPlan;

/// One kernel of it.
class SymbolicKernel {
public:
  /// `step`: of the plan, the first that calls it; in `group`.
  SymbolicKernel(std::shared_ptr<SymbolicPlan> plan, const plan::GenericGroup& group, size_t step);

  const plan::GenericKernel& kernel() const { return kernel_; }
  /// Where it is measured; never none.
  const std::vector<Workload>& timed();
  /// Where it is to be right besides: at extents of 0 and 1, and around these tails.
  std::vector<const Workload*> checked(const std::vector<plan::Tail>& tails);
  /// The kernel's extents where it is measured first.
  const std::vector<int64_t>& first_dims() const { return first_dims_; }

private:
  /// Nothing where the reference refuses all data, or what stands before the kernel cannot be computed.
  const Workload* at(const std::vector<int64_t>& dims);

  std::shared_ptr<SymbolicPlan> plan_;
  const plan::GenericGroup& group_;
  const size_t step_;
  const plan::GenericKernel& kernel_;
  const std::vector<int64_t> first_dims_;
  std::vector<Workload> timed_;
  std::map<std::vector<int64_t>, std::optional<Workload>> workloads_;
};

/// Each combination of what is named; a free dim that is not has the extent that the model was imported with.
/// Where nothing is named: the extents that have kernels of their own, or where none have those that the
/// model was imported with. None where there are no free dims. Throws Error(kInvalidArgument), which points
/// at
/// "/extents", for a name that is no free dim, and for more than 16 combinations.
std::vector<std::vector<int64_t>> named_extents(const ir::Variants& variants, const ShapeBuckets& named);

/// [{"N":24},{"N":60}] of values of the free dims.
Json extents_json(const std::vector<std::vector<int64_t>>& points, const std::vector<std::string>& free_dims);

/// The tasks of all that a package is made of, each once: of the shapes that get kernels of their own, of
/// what no free extent reaches, in plans of extents of 1, too, and of the kernels of all extents.
std::vector<Task> package_tasks(const ir::Variants& variants, const target::Target& target,
                                const SymbolicOptions& options);

/// Tasks of the kernels of the model's plan for all extents, in the order of their first use, and behind them
/// those that the plans of extents of 1 have besides; none where there is no such plan. Extents are measured
/// in the plan that serves them: where they are named, a plan that serves none of them has no tasks. Throws
/// Error(kInvalidArgument) for extents that the model does not take.
std::vector<Task> symbolic_tasks(const ir::Variants& variants, const target::Target& target,
                                 const SymbolicOptions& options);

}  // namespace tensormill::tune
