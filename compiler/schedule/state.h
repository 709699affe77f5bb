/// The working form of a program while schedule steps are replayed on it: stages with their axes, how axes
/// were split and fused, leaf order, annotations and where each stage is computed. primitives.def changes it,
/// nest.h makes loops of it. Thread-safety: a state belongs to one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/schedule/schedule.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::schedule {

/// How often a loop runs: a number, or an expression over the kernel's arguments.
class Extent {
public:
  Extent(int64_t number) : number_(number) {}  // NOLINT: an extent is a number where it is known
  explicit Extent(const te::Expr& expr);
  bool is_known() const { return !expr_; }
  bool is(int64_t number) const { return !expr_ && number_ == number; }
  /// Whether it is known to be a multiple.
  bool is_multiple_of(int64_t factor) const { return !expr_ && number_ % factor == 0; }
  /// The number; TM_CHECK where it is not known.
  operator int64_t() const;  // NOLINT: as above
  te::Expr expr() const { return expr_ ? expr_ : te::Expr(number_); }

private:
  int64_t number_ = 0;
  te::Expr expr_;  ///< null: the number
};
/// How many parts of `factor` iterations there are, the last of which need not be whole.
Extent divided(const Extent& extent, int64_t factor);
Extent product(const Extent& a, const Extent& b);

/// A loop axis of a stage. Leaves are the loops that are built.
struct StageAxis {
  std::string name;  ///< i0.. data, r0.. reduction; split: x.o, x.i; fuse: x+y
  te::Var var;
  Extent extent = 0;
  bool reduce = false;
  te::ForKind kind = te::ForKind::kSerial;
};

/// split: parent -> (first: outer, second: inner) by factor; fuse: (first, second) -> parent.
struct AxisRelation {
  bool is_split = false;
  int parent = 0, first = 0, second = 0;
  int64_t factor = 1;
  bool is_partition = false;  ///< whole tiles have loops of their own, without guards
};

enum class AttachKind : uint8_t { kRoot, kInline, kAt };

/// A dimension of a stage's storage split into (remainder, quotient) by factor: consecutive elements of one
/// residue class stand side by side, which is what a strided reader wants.
struct LayoutSplit {
  int dimension = 0;
  int64_t factor = 1;
};

/// In a stage's shape.
constexpr int64_t kUnknown = -1;

struct Stage {
  std::string name;
  te::Tensor tensor;  ///< what reads refer to
  std::vector<DType> dtypes;
  Shape shape;  ///< kUnknown where an extent is no number; the root axes have the extents themselves
  std::vector<te::Var> data_vars;  ///< variables of body and source, one per dimension
  std::vector<te::Expr> body;      ///< or empty for a reduction
  std::shared_ptr<const te::Reduction> reduction;
  std::vector<te::Expr> update_guards;  ///< conditions under which a reduction's update happens

  std::vector<StageAxis> axes;  ///< roots first: dimensions, then reduction axes
  int num_roots = 0;
  std::vector<AxisRelation> relations;
  std::vector<int> leaves;  ///< indices into axes, outermost first

  AttachKind attach = AttachKind::kRoot;
  int attach_stage = -1;
  int attach_axis = -1;
  bool in_registers = false;
  int specialized = -1;  ///< a dimension whose parts have loops of their own (row_parts.h); -1: none
  std::vector<LayoutSplit> layout;
  bool is_output = false;

  int find_axis(std::string_view axis_name) const;  ///< -1 when there is none
  int leaf_position(int axis) const;                ///< -1 when the axis is no leaf
  std::vector<te::Expr> extents() const;            ///< of the dimensions
};

class State {
public:
  explicit State(const te::Program& program, Arguments arguments = {});
  /// Replays one step; throws Error(kInvalidRecords) when it does not apply.
  void apply(const Step& step);

  const te::Program& program() const { return program_; }
  const Arguments& arguments() const { return arguments_; }
  /// Whether all extents are numbers, of inputs and stages.
  bool knows_extents() const;
  std::vector<Stage>& stages() { return stages_; }
  const std::vector<Stage>& stages() const { return stages_; }
  Stage& stage(std::string_view name);
  int find_stage(std::string_view name) const;
  /// The stage that computes `tensor`; -1 for placeholders.
  int stage_of(const te::TensorNode* tensor) const;
  /// The placeholder's position among the inputs; -1 when it is none.
  int input_of(const te::TensorNode* tensor) const;
  /// Makes a stage and gives it root axes; returns its index.
  int add_stage(Stage stage);
  /// Stage indices, producers first, by the current bodies.
  std::vector<int> order() const;
  /// Indices of stages that read `stage` directly, in order().
  std::vector<int> consumers(int stage) const;
  /// For each program output, the tensor that is written to it (a copy stage's where an output repeats or is
  /// an input).
  const std::vector<te::Tensor>& output_tensors() const { return output_tensors_; }

private:
  te::Program program_;
  Arguments arguments_;
  std::vector<Stage> stages_;
  std::vector<te::Tensor> output_tensors_;
};

/// Throws Error(kInvalidRecords).
[[noreturn]] void reject(const std::string& message);

/// Roots again from shape and reduction, dropping splits: for steps that replace a stage's definition.
void reset_axes(Stage& stage);
/// How many leaves are parts of a dimension, which must be the innermost of a stage; throws where they are
/// not.
size_t innermost_leaves(const Stage& stage, int dimension);
/// The stage's expressions: body, or the reduction's sources.
const std::vector<te::Expr>& definition(const Stage& stage);
/// Tensors read by an expression, in order of first appearance.
void collect_reads(const te::Expr& expr, std::vector<const te::TensorNode*>& reads);
/// `expr` with variables replaced all at once; shared nodes stay shared.
te::Expr substitute_all(const te::Expr& expr, const std::vector<te::Var>& vars,
                        const std::vector<te::Expr>& values);

/// One row of primitives.def.
struct Primitive {
  std::string_view name;
  int min_args, max_args;
  void (*apply)(State& state, const std::vector<std::string>& args);
  std::string_view form;
};
const std::vector<Primitive>& primitives();

}  // namespace tensormill::schedule
