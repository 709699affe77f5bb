#include "compiler/ir/sym_evaluate.h"

#include <map>
#include <unordered_map>

#include "compiler/ir/sym_float.h"
#include "compiler/te/tensor_expr.h"
#include "runtime/base/error.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill::ir {

namespace {

/// Thrown where an element cannot be worked out.
struct NotKnown {};

class Evaluator {
public:
  Evaluator(Undecided undecided, std::unordered_map<const te::TensorNode*, const KnownValue*> operands)
      : undecided_(undecided), operands_(std::move(operands)) {}

  SymInt element(const te::TensorNode& tensor, int output, const std::vector<int64_t>& at) {
    const std::tuple key(&tensor, output, at);
    if (const auto done = done_.find(key); done != done_.end()) return done->second;
    if (++steps_ > kMaxSteps) throw NotKnown{};
    return done_.emplace(key, compute(tensor, output, at)).first->second;
  }

private:
  static constexpr size_t kMaxSteps = size_t{1} << 16;
  using Values = std::unordered_map<const te::VarNode*, SymInt>;

  SymInt compute(const te::TensorNode& tensor, int output, const std::vector<int64_t>& at) {
    if (tensor.is_placeholder()) return operand(tensor, at);
    Values values;
    for (size_t d = 0; d < at.size(); ++d) values[tensor.axes[d].var.get()] = at[d];
    if (tensor.reduction == nullptr) return evaluate(tensor.body[static_cast<size_t>(output)], values);
    return reduce(*tensor.reduction, output, values);
  }

  SymInt operand(const te::TensorNode& tensor, const std::vector<int64_t>& at) const {
    const auto found = operands_.find(&tensor);
    if (found == operands_.end() || found->second == nullptr) throw NotKnown{};
    const Shape strides = row_major_strides(found->second->shape());
    int64_t position = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      if (at[d] < 0 || at[d] >= found->second->shape()[d]) throw NotKnown{};
      position += at[d] * strides[d];
    }
    if (!found->second->is_symbolic() && is_float(tensor.dtypes[0]))
      return code_of((*found->second)->element_as_double(position));
    return found->second->elements()[static_cast<size_t>(position)];
  }

  SymInt reduce(const te::Reduction& reduction, int output, Values& values) {
    Shape extents;
    for (const te::Axis& axis : reduction.axes) extents.push_back(number(evaluate(axis.extent, values)));
    std::vector<SymInt> totals;
    Shape at(extents.size(), 0);
    for (int64_t left = num_elements(extents); left > 0; --left) {
      if (++steps_ > kMaxSteps) throw NotKnown{};
      for (size_t d = 0; d < at.size(); ++d) values[reduction.axes[d].var.get()] = at[d];
      std::vector<SymInt> next;
      for (const te::Expr& source : reduction.source) next.push_back(evaluate(source, values));
      totals = totals.empty() ? next : combined(reduction, totals, next, values);
      for (size_t d = at.size(); d-- > 0;) {
        if (++at[d] < extents[d]) break;
        at[d] = 0;
      }
    }
    // Of a maximum of floats that is no finite number, and so has no code.
    if (totals.empty()) return evaluate(reduction.identity[static_cast<size_t>(output)], values);
    return totals[static_cast<size_t>(output)];
  }

  std::vector<SymInt> combined(const te::Reduction& reduction, const std::vector<SymInt>& left,
                               const std::vector<SymInt>& right, Values& values) {
    for (size_t i = 0; i < left.size(); ++i) {
      values[reduction.left[i].get()] = left[i];
      values[reduction.right[i].get()] = right[i];
    }
    std::vector<SymInt> result;
    for (const te::Expr& combine : reduction.combine) result.push_back(evaluate(combine, values));
    return result;
  }

  static SymInt code_of(double value) {
    const std::optional<int64_t> code = float_code(static_cast<float>(value));
    if (!code) throw NotKnown{};
    return *code;
  }

  static int64_t number(const SymInt& value) {
    if (!value.is_constant()) throw NotKnown{};
    return value.hint();
  }

  bool is_true(Relation relation, const SymInt& a, const SymInt& b) const {
    if (a.is_constant() && b.is_constant()) return decide(relation, a, b);
    SymbolTable* table = a.is_constant() ? b.table() : a.table();
    // Where nobody has to know it, no run that counts none of something is left out for it.
    const bool asks_for_none = undecided_ == Undecided::kUnknown && table->is_run_time(a.expr() - b.expr());
    const std::optional<bool> proven =
        asks_for_none ? table->proves_with_zeros(relation, a, b) : table->proves(relation, a, b);
    if (proven) return *proven;
    if (undecided_ == Undecided::kUnknown) throw NotKnown{};
    return table->decide(relation, a, b);
  }

  SymInt evaluate(const te::Expr& expr, const Values& values) {
    const bool is_other_float = expr->type.is_float() && expr->type.dtype != DType::kFloat32;
    if (is_other_float || expr->type.lanes != 1) throw NotKnown{};
    switch (expr->op) {
      case te::ExprOp::kFloatImm:
        return code_of(expr->float_value);
      case te::ExprOp::kIntImm:
        return expr->int_value;
      case te::ExprOp::kVar: {
        const auto found = values.find(expr->var.get());
        if (found == values.end()) throw NotKnown{};
        return found->second;
      }
      case te::ExprOp::kRead: {
        std::vector<int64_t> at;
        for (const te::Expr& index : expr->args) at.push_back(number(evaluate(index, values)));
        return element(*expr->tensor, expr->output, at);
      }
      case te::ExprOp::kSelect:
        return evaluate(expr->args[number(evaluate(expr->args[0], values)) != 0 ? 1 : 2], values);
      case te::ExprOp::kLookup:
        return (*expr->table)[static_cast<uint8_t>(number(evaluate(expr->args[0], values)))];
      case te::ExprOp::kCast:
        return cast(*expr, evaluate(expr->args[0], values));
      default:
        return operation(*expr, values);
    }
  }

  /// An integer that keeps its value: one of int64, or a number that fits; of floats those of float32.
  SymInt cast(const te::ExprNode& node, const SymInt& value) const {
    const DType from = node.args[0]->type.dtype, to = node.type.dtype;
    if (value.is_constant()) return folded(node, {value});
    if (from == to) return value;
    if (to == DType::kFloat32) return float_of(value);
    if (to == DType::kBool && from == DType::kFloat32) return is_true(Relation::kEqual, value, 0) ? 0 : 1;
    if (to != DType::kInt64 && to != DType::kInt32) throw NotKnown{};
    return from == DType::kFloat32 ? int_of_float(value) : value;
  }

  SymInt operation(const te::ExprNode& node, const Values& values) {
    std::vector<SymInt> args;
    bool constant = true;
    for (const te::Expr& arg : node.args) {
      args.push_back(evaluate(arg, values));
      constant = constant && args.back().is_constant();
    }
    if (constant) return folded(node, args);
    if (node.type.is_float()) {
      const std::optional<SymInt> result = float_operation(node.op, args);
      if (!result) throw NotKnown{};
      return *result;
    }
    switch (node.op) {
      case te::ExprOp::kAdd:
        return args[0] + args[1];
      case te::ExprOp::kSub:
        return args[0] - args[1];
      case te::ExprOp::kMul:
        return args[0] * args[1];
      case te::ExprOp::kNeg:
        return -args[0];
      case te::ExprOp::kMin:
        return min(args[0], args[1]);
      case te::ExprOp::kMax:
        return max(args[0], args[1]);
      case te::ExprOp::kFloorDiv:
      case te::ExprOp::kFloorMod:
      case te::ExprOp::kDiv:
      case te::ExprOp::kMod:
        return quotient(node.op, args[0], args[1]);
      case te::ExprOp::kCheckIndex:
        if (is_true(Relation::kLessEqual, 0, args[0]) && is_true(Relation::kLess, args[0], args[1]))
          return args[0];
        throw NotKnown{};
      default:
        return relation(node.op, args);
    }
  }

  SymInt quotient(te::ExprOp op, const SymInt& a, const SymInt& b) const {
    if (!is_true(Relation::kLess, 0, b)) throw NotKnown{};
    const bool truncates = op == te::ExprOp::kDiv || op == te::ExprOp::kMod;
    if (truncates && !is_true(Relation::kLessEqual, 0, a)) throw NotKnown{};
    return op == te::ExprOp::kFloorDiv || op == te::ExprOp::kDiv ? floordiv(a, b) : floormod(a, b);
  }

  SymInt relation(te::ExprOp op, const std::vector<SymInt>& args) const {
    switch (op) {
      case te::ExprOp::kEq:
        return is_true(Relation::kEqual, args[0], args[1]) ? 1 : 0;
      case te::ExprOp::kNe:
        return is_true(Relation::kEqual, args[0], args[1]) ? 0 : 1;
      case te::ExprOp::kLt:
        return is_true(Relation::kLess, args[0], args[1]) ? 1 : 0;
      case te::ExprOp::kLe:
        return is_true(Relation::kLessEqual, args[0], args[1]) ? 1 : 0;
      case te::ExprOp::kGt:
        return is_true(Relation::kLess, args[1], args[0]) ? 1 : 0;
      case te::ExprOp::kGe:
        return is_true(Relation::kLessEqual, args[1], args[0]) ? 1 : 0;
      default:
        throw NotKnown{};
    }
  }

  static SymInt folded(const te::ExprNode& node, const std::vector<SymInt>& args) {
    if (node.op == te::ExprOp::kCheckIndex) {
      if (args[0].hint() < 0 || args[0].hint() >= args[1].hint()) throw NotKnown{};
      return args[0];
    }
    std::vector<te::Scalar> scalars;
    for (size_t i = 0; i < args.size(); ++i) {
      const bool is_number = node.args[i]->type.is_float();
      const std::optional<float> value = is_number ? float_of_code(args[i].hint()) : std::nullopt;
      scalars.push_back(value ? te::Scalar{0, *value} : te::Scalar{args[i].hint(), 0});
    }
    if (scalars.empty()) throw NotKnown{};
    const te::Scalar result =
        te::evaluate_op(node.op, node.args[0]->type.dtype, node.type.dtype, scalars.data(), scalars.size());
    return node.type.is_float() ? code_of(result.f) : SymInt(result.i);
  }

  Undecided undecided_;
  std::unordered_map<const te::TensorNode*, const KnownValue*> operands_;
  std::map<std::tuple<const te::TensorNode*, int, std::vector<int64_t>>, SymInt> done_;
  size_t steps_ = 0;
};

bool is_fixed(const ValueType& type) { return type.shape.is_constant(); }

}  // namespace

std::optional<std::vector<KnownValue>> evaluate_symbolic(const OpDef& op, const Attrs& attrs,
                                                         const std::vector<const KnownValue*>& inputs,
                                                         const std::vector<ValueType>& input_types,
                                                         const std::vector<ValueType>& types,
                                                         Undecided undecided) {
  if (op.compute == nullptr) return std::nullopt;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != nullptr && !is_fixed(input_types[i])) return std::nullopt;
  }
  for (const ValueType& type : types) {
    if (!is_fixed(type)) return std::nullopt;
  }
  ComputeContext context{attrs, {}, input_types, types, op.name.data()};
  std::unordered_map<const te::TensorNode*, const KnownValue*> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    context.inputs.push_back(
        inputs[i] == nullptr
            ? nullptr
            : te::placeholder("x" + std::to_string(i), input_types[i].dtype, input_types[i].shape.hints()));
    operands[context.inputs.back().get()] = inputs[i];
  }
  const auto tensors = op.compute(context);
  Evaluator evaluator(undecided, std::move(operands));
  std::vector<KnownValue> results;
  try {
    for (size_t i = 0; i < types.size(); ++i) {
      const Shape shape = types[i].shape.hints();
      SymShape elements;
      Shape at(shape.size(), 0);
      for (int64_t left = num_elements(shape); left > 0; --left) {
        elements.push_back(evaluator.element(*tensors[i], 0, at));
        for (size_t d = at.size(); d-- > 0;) {
          if (++at[d] < shape[d]) break;
          at[d] = 0;
        }
      }
      results.emplace_back(types[i].dtype, shape, std::move(elements));
    }
  } catch (const NotKnown&) {
    return std::nullopt;
  }
  return results;
}

}  // namespace tensormill::ir
