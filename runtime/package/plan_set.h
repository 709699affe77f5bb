/// All plans of a package. A package of fixed shapes has one plan. One with free dims has a plan for each
/// shape that it was compiled for (a variant) and may have a generic one, whose kernels take extents as
/// arguments and which serves every other shape, but for those that the model computes in another way: they
/// have generic plans of their own. Thread-safety: values.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/extents/dim_formula.h"
#include "runtime/package/exec_plan.h"
#include "runtime/package/metadata.h"

namespace tensormill::package {

/// Of sets of plans; a fixed package's plan has one of its own (exec_plan.h). Sets of older versions are
/// refused: the model is to be compiled again.
inline constexpr int64_t kPlanSetFormatVersion = 8;
inline constexpr int64_t kMaxFreeDims = 128;
/// Largest extent that a step takes as an argument.
inline constexpr int64_t kMaxStepDim = int64_t{1} << 40;
inline constexpr int64_t kMaxVariants = 256;
inline constexpr int64_t kMaxDerivedExtents = 4096;
inline constexpr int64_t kMaxSpecialPlans = 96;
inline constexpr int64_t kMaxModelFiles = 1 << 16;
/// Largest value of a free dim.
inline constexpr int64_t kMaxFreeDim = int64_t{1} << 31;

struct PlanVariant {
  std::vector<int64_t> dims;  ///< values of the free dims
  ExecPlan plan;
};

/// An extent of a buffer (`position` in its shape) or a dims argument of a step that the free dims decide.
struct PlanHole {
  int32_t owner = 0;  ///< index of the buffer or step
  int32_t position = 0;
  DimFormula value;
};

/// A kernel's inputs that may have no elements though its output has some: positions in the step's arguments,
/// in order.
struct EmptyArguments {
  int32_t step = 0;
  std::vector<int32_t> arguments;
  bool is_any = false;  ///< one or more of them; else all
  auto operator<=>(const EmptyArguments&) const = default;
};

/// What must hold of the free dims where a plan is to serve them.
struct PlanGuard {
  Extent left, right;    ///< over the free dims, in their order
  std::string relation;  ///< "==", "!=", "<", "<=", ">" or ">="
  std::string node;      ///< the model's node that it is for; may be ""
};
inline constexpr int64_t kMaxPlanGuards = 4096;

/// A number that a run works out and extents are made of: a dim behind the free ones.
struct RunDim {
  std::string name;              ///< in formulas
  int32_t step = 0;              ///< the host step bind_extents whose result has it
  int32_t element = 0;           ///< of the result
  std::optional<int64_t> least;  ///< which the plan takes; none: any integer
  int64_t sample = 0;            ///< with which the plan is written down
};
inline constexpr int64_t kMaxRunDims = 4096;

/// The plan at some extents of the free dims and what differs for others. Its buffers are dense; views are
/// whole, but where neither they nor their roots have holes.
struct GenericPlan {
  std::vector<int64_t> dims;       ///< at which it is written down
  std::vector<int64_t> multiples;  ///< what each free dim must be a multiple of
  std::vector<int64_t> minimums;   ///< the least that each may be
  ExecPlan plan;
  std::vector<DerivedExtent> derived;  ///< dims of the holes behind the free ones
  std::vector<PlanHole> buffer_holes;
  std::vector<PlanHole> step_holes;
  std::vector<EmptyArguments> empties;  ///< all others are refused
  std::vector<PlanGuard> guards = {};
  /// What a run binds, and what must hold of it then: formulas over the free dims and these. A step behind
  /// one that binds may have extents that are made of it (segments.h).
  std::vector<RunDim> run_dims = {};
  std::vector<PlanGuard> run_guards = {};
  /// Of formulas: the free dims and the run's.
  size_t num_dims() const { return dims.size() + run_dims.size(); }
};

/// By buffer: whether it is a view that is whole at all extents, as it or its root has holes.
std::vector<bool> whole_views(const GenericPlan& generic);

/// The model that the package was compiled from: an Interpreter makes plans of it for shapes that the other
/// plans leave out.
struct KeptModel {
  /// Bytes of mod.params; they begin at a multiple of 64.
  struct File {
    std::string name;
    int64_t params_offset = 0;
    int64_t bytes = 0;
  };
  std::vector<File> files;  ///< the model, then what it names
  std::string options;      ///< how it was imported: JSON text of the importer's
};

/// Its plans have the same inputs and outputs by name, dtype and, but for outputs, rank.
struct PlanSet {
  std::vector<std::string> free_dims;  ///< none: one variant without dims
  std::vector<DimShape> input_shapes;  ///< in the plans' order; free dims by name
  std::vector<PlanVariant> variants;   ///< the first is what an executor is bound to at its start
  std::optional<GenericPlan> generic;
  /// Generic plans of other shapes, at which some dims have one extent each, as where a row of an operand
  /// stands for all rows of another one. Where several plans take a shape the first of all does.
  std::vector<GenericPlan> special = {};
  std::optional<KeptModel> model = {};  ///< where there are shapes, or values of a run, that no plan takes
  /// Whether shapes or values of a run decide about extents.
  bool is_dynamic() const { return !free_dims.empty() || generic; }
  /// What an executor starts with.
  const ExecPlan& first() const { return variants.empty() ? generic->plan : variants.front().plan; }
};

/// The plan for `dims`, validated: every argument of every kernel has the extents that the kernel computes
/// from its dims, because both are the same formulas, and a view has the size of what it views. Throws
/// Error(kInvalidTensor) when the model does not take `dims`, or an extent would be less than 0, or a kernel
/// would read what has no elements. `names`: of the free dims, for what it says.
/// `dims` are the free ones, and may have all of the run's behind them: else what is made of these is empty
/// (bind_segment).
ExecPlan instantiate(const GenericPlan& generic, std::span<const int64_t> dims,
                     std::span<const std::string> names = {});
/// Whether each dim is a multiple and within the bounds that the plan has for it, and all guards hold.
bool is_within(const GenericPlan& generic, std::span<const int64_t> dims);

/// Inputs and outputs as metadata.json shows them: an extent that differs between the plans is the free dim
/// that has the same values, or a dim without a name, as one is that depends on data. Throws
/// Error(kInvalidPackage) for a step that does not say such a dim rightly.
void describe_ports(const PlanSet& set, std::vector<TensorInfo>& inputs, std::vector<TensorInfo>& outputs);

/// Canonical JSON text (validates first): equal sets give equal bytes. A fixed package's is its plan's.
std::string plan_set_to_json(const PlanSet& set);
/// Throws Error(kInvalidPackage) for anything else than what plan_set_to_json writes: plans that disagree
/// about ports, constants or weights are refused too.
PlanSet plan_set_from_json(std::string_view text);

}  // namespace tensormill::package
