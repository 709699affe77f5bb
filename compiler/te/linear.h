/// Linear forms of int64 expressions: the common ground of simplification, bounds and proofs.
/// Thread-safety: values and pure functions.
#pragma once

#include <functional>
#include <vector>

#include "compiler/te/expr.h"

namespace tensormill::te {

/// coefficient * atom, where the atom is not a sum, a difference or a product with a constant.
struct Term {
  Expr atom;
  int64_t coefficient;
};

/// Sum of terms and a constant. Always equal to what it was made from modulo 2^64; `overflow` is set when
/// a coefficient itself had to wrap, so that the sum over the integers means nothing.
struct Linear {
  std::vector<Term> terms;
  int64_t constant = 0;
  bool overflow = false;

  bool is_constant() const { return terms.empty(); }
  void add_constant(int64_t value);
  void add(const Expr& atom, int64_t coefficient);
  void add(const Linear& other, int64_t scale = 1);
  /// The coefficient of an atom, 0 when there is none.
  int64_t coefficient_of(const Expr& atom) const;
  /// Takes the term at `index` out.
  Term take(size_t index);
};

/// Collects sums, differences, negations, products (distributed while small). `expr` is a scalar i64.
Linear to_linear(const Expr& expr);
/// The expression in canonical order: positive terms, then negative ones, then the constant.
Expr from_linear(Linear linear);
using LinearFilter = std::function<bool(const Linear&)>;
/// Joins c * floordiv(x, c) + floormod(x, c) to x, wherever both are terms. The value modulo 2^64 stays; the
/// sum over the integers stays too where `accept` (when given) takes only forms of x that do not wrap.
void recombine(Linear& linear, const LinearFilter& accept = {});
/// The reverse, where x and floordiv(x, c) have coefficients of opposite signs: what is left of x is
/// floormod(x, c), whose bounds are known.
void split_remainders(Linear& linear, const LinearFilter& accept = {});
/// A structural order of expressions; 0 when neither comes first (variables of one name).
int compare(const Expr& a, const Expr& b);
/// True when the variable occurs in the expression.
bool mentions(const Expr& expr, const Var& var);

}  // namespace tensormill::te
