#include "compiler/te/linear.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "compiler/te/tensor_expr.h"

namespace tensormill::te {
namespace {

/// Products of sums are multiplied out up to this many terms.
constexpr size_t kMaxProductTerms = 16;

bool is_i64(const Expr& expr) { return expr->type == Type{}; }

void collect_factors(const Expr& expr, std::vector<Expr>& factors) {
  if (expr->op == ExprOp::kMul) {
    for (const Expr& arg : expr->args) collect_factors(arg, factors);
  } else {
    factors.push_back(expr);
  }
}

/// Atoms multiplied in canonical order, so that i*(n*m) and (i*m)*n are one atom.
Expr product(const Expr& a, const Expr& b) {
  std::vector<Expr> factors;
  collect_factors(a, factors);
  collect_factors(b, factors);
  std::stable_sort(factors.begin(), factors.end(),
                   [](const Expr& x, const Expr& y) { return compare(x, y) < 0; });
  Expr result = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) result = result * factors[i];
  return result;
}

Linear multiply(const Linear& a, const Linear& b, const Expr& whole) {
  Linear result;
  result.overflow = a.overflow || b.overflow;
  if (a.is_constant() || b.is_constant()) {
    result.add(a.is_constant() ? b : a, a.is_constant() ? a.constant : b.constant);
    return result;
  }
  if (a.terms.size() * b.terms.size() > kMaxProductTerms) {
    result.add(whole, 1);
    return result;
  }
  for (const Term& x : a.terms) {
    for (const Term& y : b.terms) {
      int64_t coefficient = 0;
      result.overflow |= __builtin_mul_overflow(x.coefficient, y.coefficient, &coefficient);
      result.add(product(x.atom, y.atom), coefficient);
    }
  }
  Linear rest = a;
  rest.constant = 0;
  result.add(rest, b.constant);
  rest = b;
  rest.constant = 0;
  result.add(rest, a.constant);
  int64_t constant = 0;
  result.overflow |= __builtin_mul_overflow(a.constant, b.constant, &constant);
  result.add_constant(constant);
  return result;
}

/// Whether `division` is the quotient that belongs to floormod(x, c).
bool is_quotient(const Expr& division, const Expr& x, int64_t c) {
  if (division->op != ExprOp::kFloorDiv) return false;
  const int64_t* divisor = as_int(division->args[1]);
  if (divisor == nullptr) return false;
  if (*divisor == c && equal(division->args[0], x)) return true;
  if (x->op != ExprOp::kFloorDiv) return false;
  const int64_t* inner = as_int(x->args[1]);
  int64_t whole = 0;
  return inner != nullptr && *inner > 0 && !__builtin_mul_overflow(*inner, c, &whole) && *divisor == whole &&
         equal(division->args[0], x->args[0]);
}

bool recombine_once(Linear& linear, const LinearFilter& accept) {
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const Expr rest = linear.terms[i].atom;
    if (rest->op != ExprOp::kFloorMod) continue;
    const int64_t* c = as_int(rest->args[1]);
    int64_t scaled = 0;
    if (c == nullptr || *c <= 0 || __builtin_mul_overflow(*c, linear.terms[i].coefficient, &scaled)) continue;
    for (size_t j = 0; j < linear.terms.size(); ++j) {
      if (linear.terms[j].coefficient != scaled || !is_quotient(linear.terms[j].atom, rest->args[0], *c))
        continue;
      const Linear whole = to_linear(rest->args[0]);
      if (accept && !accept(whole)) continue;
      const int64_t coefficient = linear.terms[i].coefficient;
      linear.terms.erase(linear.terms.begin() + static_cast<ptrdiff_t>(std::max(i, j)));
      linear.terms.erase(linear.terms.begin() + static_cast<ptrdiff_t>(std::min(i, j)));
      linear.add(whole, coefficient);
      return true;
    }
  }
  return false;
}

/// c for which `division` is floordiv(x, c), 0 when there is none.
int64_t quotient_divisor(const Expr& division, const Expr& x) {
  const int64_t* whole = as_int(division->args[1]);
  if (whole == nullptr || *whole <= 0) return 0;
  if (is_quotient(division, x, *whole)) return *whole;
  if (x->op != ExprOp::kFloorDiv) return 0;
  const int64_t* inner = as_int(x->args[1]);
  if (inner == nullptr || *inner <= 0 || *whole % *inner != 0) return 0;
  return is_quotient(division, x, *whole / *inner) ? *whole / *inner : 0;
}

/// The factor by which `linear` holds all of `part`, by its first term; 0 when there is none.
int64_t multiple_of(const Linear& linear, const Linear& part) {
  if (part.terms.empty() || part.overflow) return 0;
  const int64_t mine = linear.coefficient_of(part.terms[0].atom), unit = part.terms[0].coefficient;
  if (mine == 0 || mine == std::numeric_limits<int64_t>::min() || unit == -1 || mine % unit != 0) return 0;
  return mine / unit;
}

/// factor * x + by * floordiv(x, c) as factor * floormod(x, c) + (factor * c + by) * floordiv(x, c)
bool split_once(Linear& linear, const LinearFilter& accept) {
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const Expr division = linear.terms[i].atom;
    const int64_t by = linear.terms[i].coefficient;
    if (division->op != ExprOp::kFloorDiv) continue;
    const auto apply = [&](const Expr& x, const Linear& form, int64_t c, int64_t factor) {
      int64_t shift = 0;
      // Only where the two pull in opposite directions: together they are a remainder, and more or less.
      if (factor == 0 || c <= 1 || (factor > 0) == (by > 0) || __builtin_mul_overflow(factor, c, &shift))
        return false;
      if (accept && !accept(form)) return false;
      linear.add(form, -factor);
      linear.add(division, shift);
      linear.add(floormod(x, Expr(c)), factor);
      return true;
    };
    const int64_t* divisor = as_int(division->args[1]);
    if (divisor == nullptr || *divisor <= 1) continue;
    const Linear dividend = to_linear(division->args[0]);
    if (apply(division->args[0], dividend, *divisor, multiple_of(linear, dividend))) return true;
    for (size_t j = 0; j < linear.terms.size(); ++j) {
      const Expr x = linear.terms[j].atom;
      if (j == i || x->op != ExprOp::kFloorDiv) continue;
      Linear form;
      form.add(x, 1);
      if (apply(x, form, quotient_divisor(division, x), linear.terms[j].coefficient)) return true;
    }
  }
  return false;
}

int order(int64_t a, int64_t b) { return a < b ? -1 : (a > b ? 1 : 0); }

}  // namespace

void Linear::add_constant(int64_t value) { overflow |= __builtin_add_overflow(constant, value, &constant); }

void Linear::add(const Expr& atom, int64_t coefficient) {
  if (coefficient == 0) return;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!equal(terms[i].atom, atom)) continue;
    overflow |= __builtin_add_overflow(terms[i].coefficient, coefficient, &terms[i].coefficient);
    if (terms[i].coefficient == 0) terms.erase(terms.begin() + static_cast<ptrdiff_t>(i));
    return;
  }
  terms.push_back({atom, coefficient});
}

void Linear::add(const Linear& other, int64_t scale) {
  if (scale == 0) return;
  overflow |= other.overflow;
  for (const Term& term : other.terms) {
    int64_t coefficient = 0;
    overflow |= __builtin_mul_overflow(term.coefficient, scale, &coefficient);
    add(term.atom, coefficient);
  }
  int64_t value = 0;
  overflow |= __builtin_mul_overflow(other.constant, scale, &value);
  add_constant(value);
}

int64_t Linear::coefficient_of(const Expr& atom) const {
  for (const Term& term : terms) {
    if (equal(term.atom, atom)) return term.coefficient;
  }
  return 0;
}

Term Linear::take(size_t index) {
  Term term = terms[index];
  terms.erase(terms.begin() + static_cast<ptrdiff_t>(index));
  return term;
}

Linear to_linear(const Expr& expr) {
  Linear result;
  if (const int64_t* value = as_int(expr)) {
    result.constant = *value;
    return result;
  }
  if (is_i64(expr)) {
    switch (expr->op) {
      case ExprOp::kAdd:
      case ExprOp::kSub:
        result = to_linear(expr->args[0]);
        result.add(to_linear(expr->args[1]), expr->op == ExprOp::kAdd ? 1 : -1);
        return result;
      case ExprOp::kNeg:
        result.add(to_linear(expr->args[0]), -1);
        return result;
      case ExprOp::kMul: {
        const Linear a = to_linear(expr->args[0]), b = to_linear(expr->args[1]);
        if (a.terms.size() == 1 && b.terms.size() == 1 && a.constant == 0 && b.constant == 0 &&
            a.terms[0].coefficient == 1 && b.terms[0].coefficient == 1) {
          result.add(product(a.terms[0].atom, b.terms[0].atom), 1);
          return result;
        }
        return multiply(a, b, expr);
      }
      default:
        break;
    }
  }
  result.add(expr, 1);
  return result;
}

Expr from_linear(Linear linear) {
  std::stable_sort(linear.terms.begin(), linear.terms.end(),
                   [](const Term& a, const Term& b) { return compare(a.atom, b.atom) < 0; });
  const auto scaled = [](const Expr& atom, int64_t by) { return by == 1 ? atom : atom * Expr(by); };
  Expr result;
  for (const Term& term : linear.terms) {
    if (term.coefficient < 0) continue;
    const Expr value = scaled(term.atom, term.coefficient);
    result = result ? result + value : value;
  }
  int64_t constant = linear.constant;
  for (const Term& term : linear.terms) {
    if (term.coefficient >= 0) continue;
    if (!result && constant != 0) {
      result = Expr(constant);
      constant = 0;
    }
    if (result && term.coefficient != std::numeric_limits<int64_t>::min()) {
      result = result - scaled(term.atom, -term.coefficient);
    } else {
      result = result ? result + scaled(term.atom, term.coefficient) : scaled(term.atom, term.coefficient);
    }
  }
  if (!result) return Expr(constant);
  if (constant == 0) return result;
  const bool subtract = constant < 0 && constant != std::numeric_limits<int64_t>::min();
  return subtract ? result - Expr(-constant) : result + Expr(constant);
}

void recombine(Linear& linear, const LinearFilter& accept) {
  if (linear.terms.size() < 2) return;
  while (recombine_once(linear, accept)) {
  }
}

void split_remainders(Linear& linear, const LinearFilter& accept) {
  // Each round takes an x away; the bound is for forms that would go in circles.
  for (int round = 0; round < 8 && linear.terms.size() >= 2 && split_once(linear, accept); ++round) {
  }
}

int compare(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return 0;
  if (!a || !b) return a ? 1 : -1;
  if (a->op != b->op) return a->op < b->op ? -1 : 1;
  if (a->op == ExprOp::kVar) return a->var->name.compare(b->var->name);
  if (a->type != b->type) {
    return order(static_cast<int64_t>(a->type.dtype) * 4096 + a->type.lanes,
                 static_cast<int64_t>(b->type.dtype) * 4096 + b->type.lanes);
  }
  if (int result = order(a->int_value, b->int_value)) return result;
  if (int result = order(std::bit_cast<int64_t>(a->float_value), std::bit_cast<int64_t>(b->float_value))) {
    return result;
  }
  if (a->table && b->table && *a->table != *b->table) return *a->table < *b->table ? -1 : 1;
  if (a->buffer && b->buffer) {
    if (int result = a->buffer->name.compare(b->buffer->name)) return result;
  }
  if (a->tensor && b->tensor) {
    if (int result = a->tensor->name.compare(b->tensor->name)) return result;
  }
  if (a->args.size() != b->args.size()) return a->args.size() < b->args.size() ? -1 : 1;
  for (size_t i = 0; i < a->args.size(); ++i) {
    if (int result = compare(a->args[i], b->args[i])) return result;
  }
  return 0;
}

bool mentions(const Expr& expr, const Var& var) {
  if (expr->op == ExprOp::kVar) return expr->var == var;
  for (const Expr& arg : expr->args) {
    if (mentions(arg, var)) return true;
  }
  return expr->mask && mentions(expr->mask, var);
}

}  // namespace tensormill::te
