#include "compiler/te/tensor_expr.h"

#include <limits>
#include <unordered_set>

#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::te {
namespace {

std::vector<Expr> extents_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

std::vector<Axis> make_axes(const char* prefix, const std::vector<Expr>& extents) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < extents.size(); ++i) {
    axes.push_back({make_var(prefix + std::to_string(i)), extents[i]});
  }
  return axes;
}

std::vector<Expr> variables_of(const std::vector<Axis>& axes) {
  std::vector<Expr> variables;
  for (const Axis& axis : axes) variables.emplace_back(axis.var);
  return variables;
}

/// The largest (smallest) value of a type, infinite for floats: the identity of min (max).
Expr extreme(DType dtype, bool largest) {
  if (is_float(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return float_imm(dtype, largest ? infinity : -infinity);
  }
  const DTypeInfo& info = dtype_info(dtype);
  if (!info.is_signed) return int_imm(dtype, largest ? -1 : 0);
  const int64_t highest = std::numeric_limits<int64_t>::max() >> (64 - info.bits);
  return int_imm(dtype, largest ? highest : -highest - 1);
}

Expr identity_of(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::kSum:
      return imm_like({dtype, 1}, 0);
    case ReduceOp::kProduct:
      return imm_like({dtype, 1}, 1);
    case ReduceOp::kMin:
      return extreme(dtype, true);
    default:
      return extreme(dtype, false);
  }
}

Expr combination_of(ReduceOp op, const Expr& left, const Expr& right) {
  switch (op) {
    case ReduceOp::kSum:
      return left + right;
    case ReduceOp::kProduct:
      return left * right;
    case ReduceOp::kMin:
      return min(left, right);
    default:
      return max(left, right);
  }
}

TensorNode stage(std::string name, std::vector<Expr> shape) {
  TensorNode node;
  node.name = std::move(name);
  node.axes = make_axes("i", shape);
  node.shape = std::move(shape);
  return node;
}

void check_scalar(const Expr& expr, const std::string& name) {
  TM_CHECK(expr && expr->type.lanes == 1, "the body of " + name + " is not a scalar");
}

/// Whether the right pair (index, value) replaces the left one.
Expr takes_right(bool largest, bool last, const Reduction& tuple) {
  const Expr left_index(tuple.left[0]), left(tuple.left[1]), right_index(tuple.right[0]),
      right(tuple.right[1]);
  Expr better = largest ? right > left : right < left;
  Expr same = right == left;
  if (right->type.is_float()) {
    const Expr left_nan = left != left, right_nan = right != right;
    better = logical_or(better, logical_and(right_nan, logical_not(left_nan)));
    same = logical_or(same, logical_and(right_nan, left_nan));
  }
  return logical_or(better, logical_and(same, last ? right_index > left_index : right_index < left_index));
}

void visit_stage(const Tensor& tensor, std::unordered_set<const TensorNode*>& seen,
                 std::vector<Tensor>& order) {
  if (tensor->is_placeholder() || !seen.insert(tensor.get()).second) return;
  std::unordered_set<const ExprNode*> visited;
  const auto walk = [&](const auto& self, const Expr& expr) -> void {
    if (!visited.insert(expr.get()).second) return;
    if (expr->op == ExprOp::kRead) visit_stage(expr->tensor, seen, order);
    for (const Expr& arg : expr->args) self(self, arg);
  };
  for (const Expr& expr : tensor->body) walk(walk, expr);
  if (tensor->reduction) {
    for (const Expr& expr : tensor->reduction->source) walk(walk, expr);
  }
  order.push_back(tensor);
}

}  // namespace

Shape TensorNode::constant_shape() const {
  Shape result;
  for (const Expr& extent : shape) {
    const int64_t* value = as_int(extent);
    TM_CHECK(value != nullptr, "tensor " + name + " has a symbolic extent");
    result.push_back(*value);
  }
  return result;
}

Expr read(Tensor tensor, std::vector<Expr> indices, int output) {
  TM_CHECK(tensor != nullptr && indices.size() == tensor->shape.size(),
           "read of " + (tensor ? tensor->name : std::string("null")) + " with " +
               std::to_string(indices.size()) + " indices");
  TM_CHECK(output >= 0 && static_cast<size_t>(output) < tensor->dtypes.size(),
           tensor->name + " has no output " + std::to_string(output));
  for (const Expr& index : indices) {
    TM_CHECK(index->type == Type{}, "index of type " + to_string(index->type));
  }
  ExprNode node{};
  node.op = ExprOp::kRead;
  node.type = {tensor->dtypes[static_cast<size_t>(output)], 1};
  node.tensor = std::move(tensor);
  node.output = output;
  node.args = std::move(indices);
  return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

Tensor placeholder(std::string name, DType dtype, std::vector<Expr> shape) {
  TensorNode node;
  node.name = std::move(name);
  node.dtypes = {storage_dtype(dtype)};
  node.shape = std::move(shape);
  return std::make_shared<const TensorNode>(std::move(node));
}

Tensor placeholder(std::string name, DType dtype, const Shape& shape) {
  return placeholder(std::move(name), dtype, extents_of(shape));
}

Tensor compute(std::string name, std::vector<Expr> shape,
               const std::function<Expr(const std::vector<Expr>&)>& body) {
  TensorNode node = stage(std::move(name), std::move(shape));
  node.body = {body(variables_of(node.axes))};
  check_scalar(node.body[0], node.name);
  node.dtypes = {node.body[0]->type.dtype};
  return std::make_shared<const TensorNode>(std::move(node));
}

Tensor compute(std::string name, const Shape& shape,
               const std::function<Expr(const std::vector<Expr>&)>& body) {
  return compute(std::move(name), extents_of(shape), body);
}

Tensor reduce(std::string name, ReduceOp op, const Shape& shape, const Shape& reduce_extents,
              const std::function<Expr(const std::vector<Expr>&, const std::vector<Expr>&)>& body) {
  return reduce(std::move(name), op, extents_of(shape), extents_of(reduce_extents), body);
}

Tensor reduce(std::string name, ReduceOp op, std::vector<Expr> shape, const std::vector<Expr>& reduce_extents,
              const std::function<Expr(const std::vector<Expr>&, const std::vector<Expr>&)>& body) {
  TensorNode node = stage(std::move(name), std::move(shape));
  auto reduction = std::make_shared<Reduction>();
  reduction->axes = make_axes("r", reduce_extents);
  const Expr source = body(variables_of(node.axes), variables_of(reduction->axes));
  check_scalar(source, node.name);
  const DType dtype = source->type.dtype;
  reduction->source = {source};
  reduction->left = {make_var("left", dtype)};
  reduction->right = {make_var("right", dtype)};
  reduction->combine = {combination_of(op, Expr(reduction->left[0]), Expr(reduction->right[0]))};
  reduction->identity = {identity_of(op, dtype)};
  node.dtypes = {dtype};
  node.reduction = std::move(reduction);
  return std::make_shared<const TensorNode>(std::move(node));
}

Tensor arg_reduce(std::string name, bool largest, bool last, const Shape& shape, int64_t extent,
                  const std::function<Expr(const std::vector<Expr>&, const Expr&)>& body) {
  TensorNode node = stage(std::move(name), extents_of(shape));
  auto reduction = std::make_shared<Reduction>();
  reduction->axes = make_axes("r", {Expr(extent)});
  const Expr position(reduction->axes[0].var);
  const Expr value = body(variables_of(node.axes), position);
  check_scalar(value, node.name);
  const DType dtype = value->type.dtype;
  reduction->source = {position, value};
  reduction->left = {make_var("left0"), make_var("left1", dtype)};
  reduction->right = {make_var("right0"), make_var("right1", dtype)};
  const Expr right = takes_right(largest, last, *reduction);
  for (size_t i = 0; i < 2; ++i) {
    reduction->combine.push_back(select(right, Expr(reduction->right[i]), Expr(reduction->left[i])));
  }
  // The identity loses every tie, so that a row of nothing but the worst value still gives one of its own
  // indices.
  const int64_t worst_index = last ? -1 : std::numeric_limits<int64_t>::max();
  reduction->identity = {Expr(worst_index), extreme(dtype, !largest)};
  node.dtypes = {DType::kInt64, dtype};
  node.reduction = std::move(reduction);
  return std::make_shared<const TensorNode>(std::move(node));
}

std::vector<Tensor> stages_of(const Program& program) {
  std::unordered_set<const TensorNode*> seen;
  std::vector<Tensor> order;
  for (const Tensor& output : program.outputs) visit_stage(output, seen, order);
  return order;
}

}  // namespace tensormill::te
