#include <limits>
#include <numeric>

#include "compiler/te/scalar_ops.h"
#include "compiler/te/simplifier.h"

namespace tensormill::te {
namespace {

__int128 floor_quotient(__int128 a, __int128 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

/// Largest common divisor of the coefficients and `divisor`.
int64_t common_divisor(const Linear& linear, int64_t divisor) {
  int64_t result = divisor;
  for (const Term& term : linear.terms) result = std::gcd(result, term.coefficient);
  return result;
}

/// Divides the terms by a common divisor of their coefficients and the constant downward.
Linear divided(const Linear& linear, int64_t by) {
  Linear result;
  for (const Term& term : linear.terms) result.add(term.atom, term.coefficient / by);
  result.constant = signed_floordiv(linear.constant, by);
  return result;
}

const Term* only_unit_term(const Linear& linear, ExprOp op) {
  if (linear.terms.size() != 1 || linear.terms[0].coefficient != 1) return nullptr;
  return linear.terms[0].atom->op == op ? &linear.terms[0] : nullptr;
}

const int64_t* positive_divisor(const Expr& division) {
  const int64_t* value = as_int(division->args[1]);
  return value != nullptr && *value > 0 ? value : nullptr;
}

}  // namespace

Expr Simplifier::simplify_division(const Expr& expr) {
  const int64_t* divisor = positive_divisor(expr);
  if (divisor == nullptr) return expr;
  Linear dividend = to_linear(expr->args[0]);
  recombine(dividend);
  if (!Prover(context_).is_exact(dividend)) return expr;
  for (const Term& term : dividend.terms) {
    if (term.coefficient == std::numeric_limits<int64_t>::min()) return expr;
  }
  const Expr result = expr->op == ExprOp::kFloorDiv ? floordiv_of(dividend, *divisor, expr)
                                                    : floormod_of(dividend, *divisor, expr);
  return has_check(expr) && !has_check(result) ? expr : result;
}

/// floor((divisor * q + rest) / divisor) = q + floor(rest / divisor)
Expr Simplifier::floordiv_of(const Linear& dividend, int64_t divisor, const Expr& fallback) {
  Linear quotient, rest;
  for (const Term& term : dividend.terms) {
    if (term.coefficient % divisor == 0) {
      quotient.add(term.atom, term.coefficient / divisor);
    } else {
      rest.add(term.atom, term.coefficient);
    }
  }
  quotient.constant = signed_floordiv(dividend.constant, divisor);
  rest.constant = signed_floormod(dividend.constant, divisor);
  const Prover prover(context_);
  if (!prover.is_exact(rest)) return fallback;
  const Range range = prover.linear_range(rest);
  if (floor_quotient(range.low, divisor) == floor_quotient(range.high, divisor)) {
    quotient.add_constant(static_cast<int64_t>(floor_quotient(range.low, divisor)));
    return from_linear(std::move(quotient));
  }
  const int64_t common = common_divisor(rest, divisor);
  rest = divided(rest, common);
  divisor /= common;
  if (const Term* inner = only_unit_term(rest, ExprOp::kFloorDiv)) {
    // floor((floor(x / c) + k) / d) = floor((x + k*c) / (c*d))
    const int64_t* c = positive_divisor(inner->atom);
    int64_t whole = 0, shift = 0;
    if (c != nullptr && !__builtin_mul_overflow(*c, divisor, &whole) &&
        !__builtin_mul_overflow(*c, rest.constant, &shift)) {
      Linear joined = to_linear(inner->atom->args[0]);
      joined.add_constant(shift);
      if (prover.is_exact(joined)) {
        const Expr nested = floordiv(from_linear(std::move(joined)), Expr(whole));
        quotient.add(to_linear(simplify_node_or_const(nested)));
        return from_linear(std::move(quotient));
      }
    }
  }
  if (!prover.is_exact(rest)) return fallback;
  quotient.add(floordiv(from_linear(std::move(rest)), Expr(divisor)), 1);
  return from_linear(std::move(quotient));
}

Expr Simplifier::floormod_of(const Linear& dividend, int64_t divisor, const Expr& fallback) {
  Linear rest;
  for (const Term& term : dividend.terms) {
    if (term.coefficient % divisor == 0) continue;
    const int64_t* inner = term.atom->op == ExprOp::kFloorMod ? positive_divisor(term.atom) : nullptr;
    if (inner != nullptr && *inner % divisor == 0) {
      // floormod(x, c*d) and x differ by a multiple of d.
      rest.add(to_linear(term.atom->args[0]), term.coefficient);
    } else {
      // The coefficient stays, as it does in the quotient: the two must be of one dividend to be joined
      // again.
      rest.add(term.atom, term.coefficient);
    }
  }
  rest.constant = signed_floormod(
      wrapping_add(signed_floormod(rest.constant, divisor), signed_floormod(dividend.constant, divisor)),
      divisor);
  const Prover prover(context_);
  if (!prover.is_exact(rest)) return fallback;
  const Range range = prover.linear_range(rest);
  if (floor_quotient(range.low, divisor) == floor_quotient(range.high, divisor)) {
    rest.add_constant(static_cast<int64_t>(-floor_quotient(range.low, divisor) * divisor));
    return from_linear(std::move(rest));
  }
  // floormod(g*x + k, g*d) = g * floormod(x + floor(k / g), d) + floormod(k, g)
  const int64_t common = common_divisor(rest, divisor);
  const int64_t remainder = signed_floormod(rest.constant, common);
  rest = divided(rest, common);
  if (!prover.is_exact(rest)) return fallback;
  Linear result;
  result.add(floormod(from_linear(std::move(rest)), Expr(divisor / common)), common);
  result.add_constant(remainder);
  return from_linear(std::move(result));
}

}  // namespace tensormill::te
