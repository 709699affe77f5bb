#include "compiler/plan/symbolic_nest.h"

#include <algorithm>
#include <unordered_map>

#include "runtime/base/error.h"

namespace tensormill::plan {

namespace {

using te::Expr;
using te::ExprOp;

/// Of what an integer is computed.
enum class Kind : uint8_t { kOther, kNumbers, kDims };

class ArgumentRewriter {
public:
  ArgumentRewriter(const Nest& nest, const SymbolVars& symbols, DimTable& table, TermVars& vars)
      : nest_(nest), symbols_(symbols), table_(table), vars_(vars) {}

  Nest run() {
    Nest result;
    result.sources = nest_.sources;
    for (const te::Tensor& input : nest_.inputs)
      result.inputs.push_back(te::placeholder(input->name, input->dtypes[0], all(input->shape)));
    inputs_ = &result.inputs;
    auto tensor = std::make_shared<te::TensorNode>(*nest_.tensor);
    tensor->shape = all(tensor->shape);
    for (te::Axis& axis : tensor->axes) axis.extent = rewritten(axis.extent);
    tensor->body = all(tensor->body);
    if (tensor->reduction) {
      auto reduction = std::make_shared<te::Reduction>(*tensor->reduction);
      for (te::Axis& axis : reduction->axes) axis.extent = rewritten(axis.extent);
      reduction->source = all(reduction->source);
      tensor->reduction = std::move(reduction);
    }
    result.tensor = std::move(tensor);
    return result;
  }

private:
  std::vector<Expr> all(const std::vector<Expr>& exprs) {
    std::vector<Expr> result;
    for (const Expr& expr : exprs) result.push_back(rewritten(expr));
    return result;
  }

  Kind kind_of(const Expr& expr) {
    if (expr->type != te::Type{}) return Kind::kOther;
    const auto [found, is_new] = kinds_.emplace(expr.get(), Kind::kOther);
    if (is_new) kinds_[expr.get()] = worked_out(expr);
    return kinds_.at(expr.get());
  }

  Kind worked_out(const Expr& expr) {
    switch (expr->op) {
      case ExprOp::kIntImm:
        return Kind::kNumbers;
      case ExprOp::kVar:
        return symbols_.count(expr->var) != 0 ? Kind::kDims : Kind::kOther;
      case ExprOp::kAdd:
      case ExprOp::kSub:
      case ExprOp::kMul:
      case ExprOp::kNeg:
      case ExprOp::kFloorDiv:
      case ExprOp::kFloorMod:
      case ExprOp::kMin:
      case ExprOp::kMax:
        break;
      default:
        return Kind::kOther;
    }
    Kind kind = Kind::kNumbers;
    for (const Expr& arg : expr->args) {
      const Kind own = kind_of(arg);
      if (own == Kind::kOther) return Kind::kOther;
      if (own == Kind::kDims) kind = Kind::kDims;
    }
    return kind;
  }

  Expr rewritten(const Expr& expr) {
    if (const auto found = done_.find(expr.get()); found != done_.end()) return found->second;
    Expr result = expr;
    std::optional<te::Dim> dim;
    if (kind_of(expr) == Kind::kDims) dim = te::to_dim(expr, symbols_);
    if (dim) {
      result = vars_.expr(table_.formula(*dim));
    } else if (expr->op == ExprOp::kRead) {
      const auto input = std::find(nest_.inputs.begin(), nest_.inputs.end(), expr->tensor);
      result = te::read((*inputs_)[static_cast<size_t>(input - nest_.inputs.begin())], all(expr->args));
    } else if (!expr->args.empty()) {
      result = te::with_args(expr, all(expr->args));
    }
    done_.emplace(expr.get(), result);
    return result;
  }

  const Nest& nest_;
  const SymbolVars& symbols_;
  DimTable& table_;
  TermVars& vars_;
  const std::vector<te::Tensor>* inputs_ = nullptr;
  std::unordered_map<const te::ExprNode*, Kind> kinds_;
  std::unordered_map<const te::ExprNode*, Expr> done_;
};

}  // namespace

std::vector<te::Dim> dims_of(const std::vector<te::Expr>& shape, const SymbolVars& symbols) {
  std::vector<te::Dim> dims;
  for (const te::Expr& extent : shape) {
    std::optional<te::Dim> dim = te::to_dim(extent, symbols);
    if (!dim) throw Error(ErrorCode::kNotSupported, "an extent is no expression over the free dims");
    dims.push_back(*std::move(dim));
  }
  return dims;
}

Nest with_arguments(const Nest& nest, const SymbolVars& symbols, DimTable& table, TermVars& vars) {
  return ArgumentRewriter(nest, symbols, table, vars).run();
}

}  // namespace tensormill::plan
