/// Tensor expressions: what is computed, not how. A tensor is a placeholder or is computed: each element is
/// an expression over its axes (`compute`), or a reduction of such expressions over reduction axes
/// (`reduce`). A reduction may be tuple-valued (arg-max); the tensor then has several outputs of one shape.
/// Tensors form a DAG through kRead expressions. Reads must be in bounds for every point of the axes; padding
/// is a select(in_bounds, read(clamped index), value), or a stage of its own. Thread-safety: immutable.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/te/expr.h"

namespace tensormill::te {

/// One loop axis: the variable runs over [0, extent).
struct Axis {
  Var var;
  Expr extent;
};

/// An associative combination of tuples: combine[i] is an expression over left[] and right[]; identity[i] is
/// its neutral element. Sum of products is formed with `sum`, whose additions become fma where the target has
/// one.
struct Reduction {
  std::vector<Axis> axes;      ///< reduction axes, outermost first
  std::vector<Var> left;       ///< accumulated values
  std::vector<Var> right;      ///< next values
  std::vector<Expr> combine;   ///< over left and right
  std::vector<Expr> identity;  ///< constants
  std::vector<Expr> source;    ///< over the tensor's axes and the reduction axes
};

struct TensorNode {
  std::string name;
  std::vector<DType> dtypes;  ///< one per output; one for all but tuple-valued reductions
  std::vector<Expr> shape;    ///< extents
  std::vector<Axis> axes;     ///< one per dimension; empty for placeholders and scalars
  std::vector<Expr> body;     ///< one per output: over axes; or empty (placeholder, reduction)
  std::shared_ptr<const Reduction> reduction;  ///< set for reductions
  bool is_placeholder() const { return body.empty() && reduction == nullptr; }
  /// Extents as integers; TM_CHECK when one is symbolic.
  Shape constant_shape() const;
};

Tensor placeholder(std::string name, DType dtype, std::vector<Expr> shape);
Tensor placeholder(std::string name, DType dtype, const Shape& shape);
/// body(axes) gives the element at `axes`.
Tensor compute(std::string name, std::vector<Expr> shape,
               const std::function<Expr(const std::vector<Expr>&)>& body);
Tensor compute(std::string name, const Shape& shape,
               const std::function<Expr(const std::vector<Expr>&)>& body);

enum class ReduceOp : uint8_t { kSum, kProduct, kMin, kMax };
/// body(axes, reduction axes) is the summand. Float min/max propagate NaN. An empty reduction gives the
/// identity (min: +inf or the type's largest; max: -inf or the smallest).
Tensor reduce(std::string name, ReduceOp op, std::vector<Expr> shape, const std::vector<Expr>& reduce_extents,
              const std::function<Expr(const std::vector<Expr>&, const std::vector<Expr>&)>& body);
Tensor reduce(std::string name, ReduceOp op, const Shape& shape, const Shape& reduce_extents,
              const std::function<Expr(const std::vector<Expr>&, const std::vector<Expr>&)>& body);
/// Index (int64, along one reduction axis) of the largest or smallest value; output 0 is the index, output 1
/// the value. The first index wins, or the last with `last`; a NaN counts as larger (smaller) than
/// everything.
Tensor arg_reduce(std::string name, bool largest, bool last, const Shape& shape, int64_t extent,
                  const std::function<Expr(const std::vector<Expr>&, const Expr&)>& body);

/// What one kernel computes: placeholders in parameter order, outputs in parameter order (each output 0 of a
/// tensor). Stages between them are found through reads.
struct Program {
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};
/// All computed tensors of the program, producers first, in a fixed order (depth-first from outputs, args in
/// order).
std::vector<Tensor> stages_of(const Program& program);

}  // namespace tensormill::te
