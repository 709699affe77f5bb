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
      result.inputs.push_back(te::placeholder(input->name, input->dtypes[0], extents(input->shape)));
    inputs_ = &result.inputs;
    auto tensor = std::make_shared<te::TensorNode>(*nest_.tensor);
    tensor->shape = extents(tensor->shape);
    for (te::Axis& axis : tensor->axes) axis.extent = extent(axis.extent);
    tensor->body = all(tensor->body);
    for (const NestPlace& place : nest_.places)
      result.places.push_back({all(place.at), place.inside ? rewritten(place.inside) : Expr()});
    if (tensor->reduction) {
      auto reduction = std::make_shared<te::Reduction>(*tensor->reduction);
      for (te::Axis& axis : reduction->axes) axis.extent = extent(axis.extent);
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

  std::vector<Expr> extents(const std::vector<Expr>& shape) {
    std::vector<Expr> result;
    for (const Expr& each : shape) result.push_back(extent(each));
    return result;
  }

  /// What has no elements below 0: the executor refuses such extents.
  Expr extent(const Expr& expr) {
    const std::optional<te::Dim> dim =
        kind_of(expr) == Kind::kDims ? te::to_dim(expr, symbols_) : std::nullopt;
    if (!dim) return rewritten(expr);
    const te::Dim simple = table_.simplified(*dim);
    return is_scaled(simple) ? vars_.expr(table_.formula(simple)) : vars_.whole(table_.formula(simple));
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
    const std::optional<Expr> whole = dim ? argument(*dim) : std::nullopt;
    if (whole) {
      result = *whole;
    } else if (dim && expr->args.empty()) {
      throw Error(ErrorCode::kNotSupported, "nothing shows how little " + dim->to_string() + " can be");
    } else if (expr->op == ExprOp::kRead) {
      const auto input = std::find(nest_.inputs.begin(), nest_.inputs.end(), expr->tensor);
      result = te::read((*inputs_)[static_cast<size_t>(input - nest_.inputs.begin())], all(expr->args));
    } else if (!expr->args.empty()) {
      result = te::with_args(expr, all(expr->args));
    }
    done_.emplace(expr.get(), result);
    return result;
  }

  /// Whether it is a number, or something that is never below 0, times and plus numbers.
  bool is_scaled(const te::Dim& dim) const {
    const std::vector<te::DimTerm>& terms = dim.terms();
    if (terms.empty()) return true;
    return terms.size() == 1 && terms[0].factors.size() == 1 &&
           table_.is_never_negative(te::of_atom(terms[0].factors[0]));
  }

  /// Kernels take no negative arguments, and rely on that. Nothing of what may be less than any number that
  /// is known: its parts are arguments then.
  std::optional<Expr> argument(const te::Dim& dim) {
    const te::Dim simple = table_.simplified(dim);
    if (is_scaled(simple)) return vars_.expr(table_.formula(simple));
    if (table_.is_never_negative(simple)) return vars_.whole(table_.formula(simple));
    const std::optional<int64_t> least = table_.least(simple);
    if (!least) return std::nullopt;
    return vars_.whole(table_.formula(simple - te::Dim(*least))) + Expr(*least);
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
