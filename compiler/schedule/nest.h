/// From a scheduled state to loops: inline expansion, regions of stages computed inside others (interval
/// analysis over the consumer's inner loops), guards, buffers, init and update of reductions. Thread-safety:
/// a nest belongs to one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/schedule/state.h"
#include "compiler/te/affine.h"
#include "compiler/te/stmt.h"

namespace tensormill::schedule {

/// What is known about one stage once all steps are applied.
struct StagePlan {
  std::vector<te::Expr> definition;  ///< body or sources, inlined stages expanded
  std::vector<Extent> extent;        ///< of each axis, from the region that is computed
  std::vector<te::Expr> value;       ///< of each axis over the axes' own variables
  std::vector<char> is_let;          ///< axes whose value gets a name of its own
  std::vector<te::Expr> named;       ///< what the names of those axes stand for
  std::vector<te::Expr> region_min;  ///< per dimension, over variables of enclosing loops
  std::vector<Extent> region;        ///< extents of what is computed, per dimension
  std::vector<te::Buffer> buffers;   ///< one per output of the stage
  bool inside_parallel = false;
};

class Plan {
public:
  /// Computes definitions, regions and buffers; throws Error(kInvalidRecords) when the steps contradict each
  /// other.
  Plan(const State& state, te::BoundsContext& ranges);
  const StagePlan& operator[](int stage) const { return plans_[static_cast<size_t>(stage)]; }
  /// Stages that are computed (not inlined), producers first.
  const std::vector<int>& order() const { return order_; }
  const std::vector<te::Buffer>& inputs() const { return inputs_; }
  /// The element of stage or input `tensor` at `index`, as a load.
  te::Expr load_of(const te::TensorNode* tensor, const std::vector<te::Expr>& index, int output) const;
  /// Indices into the stage's buffers for the element at `index` (region and layout applied).
  std::vector<te::Expr> place_of(int stage, const std::vector<te::Expr>& index) const;

private:
  void expand_definitions();
  void plan_axes(int stage);
  void infer_region(int stage);
  void make_buffers(int stage);
  /// `expr` with the axes that have a name of their own and are chosen written out, of the stages planned so
  /// far.
  te::Expr without_names(te::Expr expr, const std::function<bool(const te::Var&)>& which) const;

  const State& state_;
  te::BoundsContext& ranges_;
  std::vector<StagePlan> plans_;
  std::vector<int> order_;
  std::vector<te::Buffer> inputs_;
};

/// Extents of a stage's axes when its dimensions have the extents `region`.
std::vector<Extent> axis_extents(const Stage& stage, const std::vector<Extent>& region);
/// Notes the range of an axis's variable.
void bind_axis_range(te::BoundsContext& ranges, const te::Var& var, const Extent& extent);

/// Values of a stage's axes while its loops are built from the outside in.
class AxisValues {
public:
  /// Axes that are named by a let get `names[axis]`.
  AxisValues(const Stage& stage, const StagePlan& plan, std::vector<te::Var> names);
  void bind(int axis, te::Expr value);
  /// Derives what follows from the bound axes; returns the axes that became known, in order.
  std::vector<int> propagate();
  bool known(int axis) const { return static_cast<bool>(values_[static_cast<size_t>(axis)]); }
  const te::Expr& value(int axis) const { return values_[static_cast<size_t>(axis)]; }
  /// The expression that a let of the axis binds.
  const te::Expr& definition(int axis) const { return definitions_[static_cast<size_t>(axis)]; }

private:
  void set(int axis, const te::Expr& value, std::vector<int>& fresh);

  const Stage& stage_;
  const StagePlan& plan_;
  std::vector<te::Var> names_;
  std::vector<te::Expr> values_, definitions_;
};

/// The loop nest of a scheduled state.
te::Function build_function(const State& state, const std::string& name);

}  // namespace tensormill::schedule
