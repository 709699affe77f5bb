// Dims as formulas, texts and expressions, and back.

#include <algorithm>
#include <limits>

#include "compiler/te/dim_builder.h"
#include "runtime/base/error.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill::te {
namespace {

using AtomKind = DimAtom::Kind;
using ExtentCode = Extent::Code;

/// A summand: a monomial, or where `divisor` is set coefficient * (dividend % divisor).
struct Summand {
  int64_t coefficient = 0;
  std::vector<Atom> factors;
  std::optional<Dim> dividend, divisor;
};

/// Takes a k * x - k * y * (x // y) out of the sum; false when there is none.
bool take_remainder(Dim& dim, std::vector<Summand>& found) {
  for (const DimTerm& term : dim.terms()) {
    for (size_t i = 0; i < term.factors.size(); ++i) {
      if (term.factors[i]->kind != AtomKind::kFloorDiv) continue;
      const Dim &x = term.factors[i]->args[0], &y = term.factors[i]->args[1];
      DimTerm others = term;
      others.factors.erase(others.factors.begin() + static_cast<ptrdiff_t>(i));
      const Dim by = others.factors.empty() ? Dim(-term.coefficient) : -of_term(others);
      const std::optional<Dim> times = exact_quotient(by, y);
      if (!times || !times->is_constant() || x.is_constant()) continue;
      const Dim rest = dim - x * *times - of_term(term);
      if (rest.terms().size() + x.terms().size() + 1 != dim.terms().size()) continue;
      found.push_back({times->constant(), {}, x, y});
      dim = rest;
      return true;
    }
  }
  return false;
}

class Emitter {
public:
  Emitter(std::vector<std::string> names, bool calls_are_symbols)
      : names_(std::move(names)), calls_are_symbols_(calls_are_symbols) {}

  Extent extent(const Dim& dim) {
    emit(dim);
    return {std::move(ops_), std::move(names_)};
  }

private:
  void push(ExtentCode code, int64_t value = 0) { ops_.push_back({code, value}); }

  void emit(Dim dim) {
    std::vector<Summand> summands;
    while (take_remainder(dim, summands)) {
    }
    for (const DimTerm& term : dim.terms()) summands.push_back({term.coefficient, term.factors, {}, {}});
    // What is added comes first, so that no sum begins with a sign that it can do without.
    std::stable_partition(summands.begin(), summands.end(),
                          [](const Summand& each) { return each.coefficient > 0; });
    int64_t constant = dim.constant();
    bool empty = true;
    for (const Summand& each : summands) {
      if (empty && each.coefficient < 0 && constant > 0) {
        push(ExtentCode::kConstant, constant);
        constant = 0;
        empty = false;
      }
      const bool negated = each.coefficient < 0;
      emit(each, negated && !empty ? -each.coefficient : each.coefficient);
      if (!empty) push(negated ? ExtentCode::kSub : ExtentCode::kAdd);
      empty = false;
    }
    if (empty || constant != 0) {
      const bool negated = !empty && constant < 0 && constant != std::numeric_limits<int64_t>::min();
      push(ExtentCode::kConstant, negated ? -constant : constant);
      if (!empty) push(negated ? ExtentCode::kSub : ExtentCode::kAdd);
    }
  }

  void emit(const Summand& summand, int64_t coefficient) {
    const bool scaled = coefficient != 1 && coefficient != -1;
    if (scaled) push(ExtentCode::kConstant, coefficient);
    bool first = !scaled;
    const auto multiply = [&] {
      if (first && coefficient == -1) push(ExtentCode::kNeg);
      if (!first) push(ExtentCode::kMul);
      first = false;
    };
    for (const Atom& atom : summand.factors) {
      emit(*atom);
      multiply();
    }
    if (!summand.divisor) return;
    emit(*summand.dividend);
    emit(*summand.divisor);
    push(ExtentCode::kFloorMod);
    multiply();
  }

  void emit_symbol(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    push(ExtentCode::kSymbol, found - names_.begin());
    if (found == names_.end()) names_.push_back(name);
  }

  void emit(const DimAtom& atom) {
    switch (atom.kind) {
      case AtomKind::kSymbol:
        return emit_symbol(atom.name);
      case AtomKind::kFloorDiv:
        emit(atom.args[0]);
        emit(atom.args[1]);
        return push(ExtentCode::kFloorDiv);
      case AtomKind::kMin:
      case AtomKind::kMax:
        for (size_t i = 0; i < atom.args.size(); ++i) {
          emit(atom.args[i]);
          if (i > 0) push(atom.kind == AtomKind::kMin ? ExtentCode::kMin : ExtentCode::kMax);
        }
        return;
      case AtomKind::kCall:
        break;
    }
    if (calls_are_symbols_) return emit_symbol(call_text(atom));
    for (const Dim& arg : atom.args) emit(arg);
    push(ExtentCode::kCall, static_cast<int64_t>(find_extent_function(atom.name).value()));
  }

  std::vector<std::string> names_;
  bool calls_are_symbols_;
  std::vector<Extent::Op> ops_;
};

/// Runs the program over values of another kind. `Value` has the operators, floordiv, floormod, min and max.
template <typename Value, typename Symbol, typename Call>
Value run(const Extent& extent, Symbol&& symbol, Call&& call_of) {
  std::vector<Value> stack;
  for (const Extent::Op& op : extent.ops()) {
    if (op.code == ExtentCode::kConstant) {
      stack.emplace_back(op.value);
    } else if (op.code == ExtentCode::kSymbol) {
      stack.push_back(symbol(extent.symbols()[static_cast<size_t>(op.value)]));
    } else if (op.code == ExtentCode::kNeg) {
      stack.back() = -stack.back();
    } else if (op.code == ExtentCode::kCall) {
      const ExtentFunction& function = extent_functions()[static_cast<size_t>(op.value)];
      const auto first = stack.end() - static_cast<ptrdiff_t>(function.arity);
      std::vector<Value> args(first, stack.end());
      stack.erase(first, stack.end());
      stack.push_back(call_of(function.name, std::move(args)));
    } else {
      const Value b = stack.back();
      stack.pop_back();
      Value& a = stack.back();
      a = op.code == ExtentCode::kAdd        ? a + b
          : op.code == ExtentCode::kSub      ? a - b
          : op.code == ExtentCode::kMul      ? a * b
          : op.code == ExtentCode::kFloorDiv ? floordiv(a, b)
          : op.code == ExtentCode::kFloorMod ? floormod(a, b)
          : op.code == ExtentCode::kMin      ? min(a, b)
                                             : max(a, b);
    }
  }
  return stack.back();
}

}  // namespace

Extent Dim::extent() const {
  if (is_constant()) return Extent(constant_);
  return Emitter(symbols(), false).extent(*this);
}

std::string Dim::to_string() const { return extent().to_string(); }

const std::string& call_text(const DimAtom& call) {
  CallText& kept = *call.text;
  std::call_once(kept.once,
                 [&] { kept.text = of_atom(make_atom(call.kind, call.name, call.args)).to_string(); });
  return kept.text;
}

Dim to_dim(const Extent& extent) {
  return run<Dim>(
      extent, [](const std::string& name) { return Dim::symbol(name); },
      [](std::string_view name, std::vector<Dim> args) { return call(name, std::move(args)); });
}

Dim parse_dim(std::string_view text) { return to_dim(Extent::parse(text)); }

Expr to_expr(const Dim& dim, const std::map<std::string, Var>& variables) {
  const auto variable = [&variables](const std::string& name) {
    const auto found = variables.find(name);
    TM_CHECK(found != variables.end(), "no variable for the extent " + name);
    return Expr(found->second);
  };
  const auto no_call = [](std::string_view name, const std::vector<Expr>&) -> Expr {
    throw InternalError("a call of " + std::string(name) + " where calls are symbols");
  };
  return run<Expr>(Emitter(dim.symbols(), true).extent(dim), variable, no_call);
}

std::optional<Dim> to_dim(const Expr& expr, const std::map<Var, Dim>& known) {
  if (expr->type != Type{}) return std::nullopt;
  if (const int64_t* value = as_int(expr)) return Dim(*value);
  if (expr->op == ExprOp::kVar) {
    const auto found = known.find(expr->var);
    return found == known.end() ? Dim::symbol(expr->var->name) : found->second;
  }
  std::vector<Dim> args;
  for (const Expr& arg : expr->args) {
    std::optional<Dim> each = to_dim(arg, known);
    if (!each) return std::nullopt;
    args.push_back(std::move(*each));
  }
  switch (expr->op) {
    case ExprOp::kAdd:
      return args[0] + args[1];
    case ExprOp::kSub:
      return args[0] - args[1];
    case ExprOp::kMul:
      return args[0] * args[1];
    case ExprOp::kNeg:
      return -args[0];
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod:
      // In the loop IR x / 0 is 0; a dim has no such quotient.
      if (args[1] == Dim(0)) return std::nullopt;
      return expr->op == ExprOp::kFloorDiv ? floordiv(args[0], args[1]) : floormod(args[0], args[1]);
    case ExprOp::kMin:
      return min(args[0], args[1]);
    case ExprOp::kMax:
      return max(args[0], args[1]);
    default:
      return std::nullopt;
  }
}

}  // namespace tensormill::te
