/// Linear normal form of int64 index expressions: constant + sum of coefficient x atom, where an atom is a
/// variable or a term that is not linear (floordiv, min, load ...). floormod(x, c) is held as x -
/// c*floordiv(x, c), so that fusing axes and flattening their indices cancels exactly; to_expr folds what is
/// left back to floormod. Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/te/expr.h"

namespace tensormill::schedule {

/// Inclusive bounds of variables, for deciding floordiv, min, max and comparisons.
struct Range {
  int64_t low = 0;
  int64_t high = 0;
};
class Ranges {
public:
  void bind(const te::Var& var, Range range) { ranges_[var.get()] = range; }
  void unbind(const te::Var& var) { ranges_.erase(var.get()); }
  const Range* find(const te::Var& var) const;

private:
  std::unordered_map<const te::VarNode*, Range> ranges_;  // looked up, never iterated
};

struct Affine {
  struct Term {
    te::Expr atom;
    int64_t coefficient = 0;
  };
  int64_t constant = 0;
  std::vector<Term> terms;  ///< distinct atoms, coefficients != 0, in order of first appearance

  bool is_constant() const { return terms.empty(); }
  void add(const te::Expr& atom, int64_t coefficient);
  void add(const Affine& other, int64_t factor);
  /// Coefficient of a variable as an atom of its own (not inside other atoms).
  int64_t coefficient(const te::Var& var) const;
};

/// The normal form of a scalar int64 expression.
Affine to_affine(const te::Expr& expr, const Ranges& ranges);
te::Expr to_expr(const Affine& affine, const Ranges& ranges);
/// The same value with k*x - k*c*floordiv(x, c) written as k*floormod(x, c).
Affine fold_mods(Affine affine, const Ranges& ranges);
/// The normal form, or the expression as it stands where the normal form says less about its bounds
/// (divisions that don't cancel): what follows must be able to show that an index is in bounds.
te::Expr bounded_form(const te::Expr& expr, const Ranges& ranges);
/// bounded_form for scalar int64 and bool expressions; other types are returned unchanged.
te::Expr normalize(const te::Expr& expr, const Ranges& ranges);
/// Bounds; nothing when an end is not known.
std::optional<Range> range_of(const te::Expr& expr, const Ranges& ranges);
std::optional<Range> range_of(const Affine& affine, const Ranges& ranges);
/// Whether a comparison (or conjunction of them) of int64 expressions always holds, never holds, or neither.
std::optional<bool> decide(const te::Expr& condition, const Ranges& ranges);
/// True when a floordiv or floormod occurs anywhere in `expr`.
bool has_division(const te::Expr& expr);
/// True when `var` occurs anywhere in `expr`, masks included.
bool uses_var(const te::Expr& expr, const te::Var& var);

}  // namespace tensormill::schedule
