#include "compiler/schedule/affine.h"

#include <algorithm>
#include <numeric>

#include "compiler/te/linear.h"
#include "compiler/te/stmt.h"
#include "runtime/base/error.h"

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;

namespace {

// Ends past this are treated as unknown, so that no sum or product below can wrap.
constexpr int64_t kLimit = int64_t{1} << 56;

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

bool scalar_index(const Expr& expr) { return expr->type.dtype == DType::kInt64 && expr->type.lanes == 1; }

std::optional<Range> checked(__int128 low, __int128 high) {
  if (low < -kLimit || high > kLimit || low > high) return std::nullopt;
  return Range{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

Affine divide(const Affine& value, int64_t divisor, const Ranges& ranges);

// floor(rest / divisor) where rest is not known to be inside [0, divisor).
Affine divide_rest(const Affine& rest, int64_t divisor, const Ranges& ranges) {
  // rest = g*y + s with g | divisor and s in [0, g): the small part cannot carry.
  for (const Affine::Term& candidate : rest.terms) {
    const int64_t g = std::abs(candidate.coefficient);
    if (g <= 1 || divisor % g != 0) continue;
    Affine large, small;
    for (const Affine::Term& term : rest.terms) {
      if (term.coefficient % g == 0) {
        large.add(term.atom, term.coefficient / g);
      } else {
        small.add(term.atom, term.coefficient);
      }
    }
    large.constant = floor_divide(rest.constant, g);
    small.constant = rest.constant - large.constant * g;
    const std::optional<Range> range = range_of(small, ranges);
    if (range && range->low >= 0 && range->high < g) return divide(large, divisor / g, ranges);
  }
  // floor((y + floor(x / c)) / d) = floor((c*y + x) / (c*d))
  for (const Affine::Term& term : rest.terms) {
    const int64_t* inner = term.atom->op == ExprOp::kFloorDiv ? te::as_int(term.atom->args[1]) : nullptr;
    if (term.coefficient != 1 || !inner || *inner <= 0 || *inner >= kLimit / divisor / 2) continue;
    const std::optional<Range> range = range_of(rest, ranges);
    if (rest.terms.size() > 1 && (!range || std::max(std::abs(range->low), range->high) > kLimit / *inner))
      continue;
    // In the order of the terms, so that the same index reached on another way gives the same atom.
    Affine numerator;
    numerator.constant = rest.constant * *inner;
    for (const Affine::Term& part : rest.terms) {
      if (&part == &term) {
        numerator.add(to_affine(part.atom->args[0], ranges), 1);
      } else {
        numerator.add(part.atom, part.coefficient * *inner);
      }
    }
    return divide(numerator, *inner * divisor, ranges);
  }
  // In one order, so that the same index reached on another way gives the same atom.
  Affine ordered = rest;
  std::stable_sort(
      ordered.terms.begin(), ordered.terms.end(),
      [](const Affine::Term& a, const Affine::Term& b) { return te::compare(a.atom, b.atom) < 0; });
  Affine result;
  result.add(te::floordiv(to_expr(ordered, ranges), Expr(divisor)), 1);
  return result;
}

Affine divide(const Affine& value, int64_t divisor, const Ranges& ranges) {
  if (divisor == 1) return value;
  Affine quotient, rest;
  quotient.constant = floor_divide(value.constant, divisor);
  rest.constant = value.constant - quotient.constant * divisor;
  for (const Affine::Term& term : value.terms) {
    const int64_t whole = term.coefficient / divisor;
    if (whole != 0) quotient.add(term.atom, whole);
    if (term.coefficient != whole * divisor) rest.add(term.atom, term.coefficient - whole * divisor);
  }
  const std::optional<Range> range = range_of(rest, ranges);
  if (range) {
    const int64_t low = floor_divide(range->low, divisor);
    if (low == floor_divide(range->high, divisor)) {
      quotient.constant += low;
      return quotient;
    }
  }
  quotient.add(divide_rest(rest, divisor, ranges), 1);
  return quotient;
}

Expr rebuild(const Expr& expr, const Ranges& ranges) {
  if (expr->args.empty()) return expr;
  std::vector<Expr> args;
  bool changed = false;
  for (const Expr& arg : expr->args) {
    args.push_back(normalize(arg, ranges));
    changed = changed || !args.back().same_as(arg);
  }
  const auto constant = [](const Expr& e) { return e->op == ExprOp::kIntImm; };
  if (expr->op == ExprOp::kSelect && constant(args[0])) return args[0]->int_value != 0 ? args[1] : args[2];
  if (expr->op == ExprOp::kBitAnd && expr->type.dtype == DType::kBool) {
    if (constant(args[0])) return args[0]->int_value != 0 ? args[1] : args[0];
    if (constant(args[1])) return args[1]->int_value != 0 ? args[0] : args[1];
  }
  if (!expr->mask) return changed ? te::with_args(expr, std::move(args)) : expr;
  const Expr mask = normalize(expr->mask, ranges);
  if (!constant(mask))
    return changed || !mask.same_as(expr->mask) ? te::with_args(expr, std::move(args), mask) : expr;
  return mask->int_value != 0 ? te::load(expr->buffer, std::move(args)) : te::imm_like(expr->type, 0);
}

// min and max of operands whose difference is bounded away from zero.
std::optional<Affine> decide_min_max(const Expr& expr, const Ranges& ranges) {
  const Affine a = to_affine(expr->args[0], ranges);
  const Affine b = to_affine(expr->args[1], ranges);
  Affine difference = a;
  difference.add(b, -1);
  const std::optional<Range> range = range_of(difference, ranges);
  if (!range) return std::nullopt;
  const bool is_min = expr->op == ExprOp::kMin;
  if (range->high <= 0) return is_min ? a : b;
  if (range->low >= 0) return is_min ? b : a;
  return std::nullopt;
}

Affine opaque(const Expr& expr, const Ranges& ranges) {
  if (expr->op == ExprOp::kMin || expr->op == ExprOp::kMax) {
    if (std::optional<Affine> decided = decide_min_max(expr, ranges)) return *decided;
  }
  if (expr->op == ExprOp::kSelect) {
    if (std::optional<bool> known = decide(expr->args[0], ranges))
      return to_affine(expr->args[*known ? 1 : 2], ranges);
  }
  Affine result;
  const Expr atom = rebuild(expr, ranges);
  if (const int64_t* value = te::as_int(atom)) {
    result.constant = *value;
  } else {
    result.add(atom, 1);
  }
  return result;
}

std::optional<Range> range_of_atom(const Expr& atom, const Ranges& ranges);

}  // namespace

const Range* Ranges::find(const te::Var& var) const {
  const auto found = ranges_.find(var.get());
  return found == ranges_.end() ? nullptr : &found->second;
}

void Affine::add(const Expr& atom, int64_t coefficient) {
  if (coefficient == 0) return;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!te::equal(terms[i].atom, atom)) continue;
    terms[i].coefficient += coefficient;
    if (terms[i].coefficient == 0) terms.erase(terms.begin() + static_cast<ptrdiff_t>(i));
    return;
  }
  terms.push_back({atom, coefficient});
}

void Affine::add(const Affine& other, int64_t factor) {
  constant += other.constant * factor;
  for (const Term& term : other.terms) add(term.atom, term.coefficient * factor);
}

int64_t Affine::coefficient(const te::Var& var) const {
  for (const Term& term : terms) {
    if (term.atom->op == ExprOp::kVar && term.atom->var == var) return term.coefficient;
  }
  return 0;
}

Affine to_affine(const Expr& expr, const Ranges& ranges) {
  Affine result;
  if (!scalar_index(expr)) {
    result.add(expr, 1);
    return result;
  }
  switch (expr->op) {
    case ExprOp::kIntImm:
      result.constant = expr->int_value;
      return result;
    case ExprOp::kVar: {
      const Range* range = ranges.find(expr->var);
      if (range && range->low == range->high) {
        result.constant = range->low;
      } else {
        result.add(expr, 1);
      }
      return result;
    }
    case ExprOp::kAdd:
    case ExprOp::kSub:
      result = to_affine(expr->args[0], ranges);
      result.add(to_affine(expr->args[1], ranges), expr->op == ExprOp::kAdd ? 1 : -1);
      return result;
    case ExprOp::kNeg:
      result.add(to_affine(expr->args[0], ranges), -1);
      return result;
    case ExprOp::kMul: {
      const Affine a = to_affine(expr->args[0], ranges);
      const Affine b = to_affine(expr->args[1], ranges);
      if (a.is_constant()) {
        result.add(b, a.constant);
      } else if (b.is_constant()) {
        result.add(a, b.constant);
      } else {
        return opaque(expr, ranges);
      }
      return result;
    }
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod: {
      const Affine divisor = to_affine(expr->args[1], ranges);
      if (!divisor.is_constant() || divisor.constant <= 0 || divisor.constant > kLimit)
        return opaque(expr, ranges);
      const Affine value = to_affine(expr->args[0], ranges);
      Affine quotient = divide(value, divisor.constant, ranges);
      if (expr->op == ExprOp::kFloorDiv) return quotient;
      result = value;
      result.add(quotient, -divisor.constant);
      return result;
    }
    default:
      return opaque(expr, ranges);
  }
}

namespace {

// k such that the terms of `whole` contain k * part; 0 when there is none.
int64_t multiple_of(const Affine& whole, const Affine& part) {
  if (part.is_constant()) return 0;
  int64_t k = 0;
  for (const Affine::Term& term : part.terms) {
    const auto found = std::find_if(whole.terms.begin(), whole.terms.end(),
                                    [&](const Affine::Term& t) { return te::equal(t.atom, term.atom); });
    if (found == whole.terms.end() || found->coefficient % term.coefficient != 0) return 0;
    const int64_t ratio = found->coefficient / term.coefficient;
    if (k != 0 && ratio != k) return 0;
    k = ratio;
  }
  return k;
}

// Turns k*x + q*floordiv(x, c) into k*floormod(x, c) + (q + k*c)*floordiv(x, c) where that makes q smaller.
bool fold_division(Affine& affine, size_t index, const Affine& numerator, const Expr& x, int64_t c) {
  const Affine::Term term = affine.terms[index];
  const int64_t k = multiple_of(affine, numerator);
  if (k <= 0 || k > kLimit / c || std::abs(k) > std::abs(term.coefficient)) return false;
  const int64_t left = term.coefficient + k * c;
  if (std::abs(left) >= std::abs(term.coefficient)) return false;
  affine.add(numerator, -k);
  affine.add(term.atom, left - term.coefficient);
  affine.add(te::floormod(x, Expr(c)), k);
  return true;
}

bool fold_one(Affine& affine, size_t index, const Ranges& ranges) {
  const Expr atom = affine.terms[index].atom;
  if (atom->op != ExprOp::kFloorDiv) return false;
  const int64_t* divisor = te::as_int(atom->args[1]);
  if (!divisor || *divisor <= 0) return false;
  if (fold_division(affine, index, to_affine(atom->args[0], ranges), atom->args[0], *divisor)) return true;
  // floordiv(x, c) is floordiv(floordiv(x, d), c/d) too.
  for (const Affine::Term& other : affine.terms) {
    if (other.atom->op != ExprOp::kFloorDiv || !te::equal(other.atom->args[0], atom->args[0])) continue;
    const int64_t* inner = te::as_int(other.atom->args[1]);
    if (!inner || *inner <= 1 || *inner >= *divisor || *divisor % *inner != 0) continue;
    Affine quotient;
    const Expr part = other.atom;  // folding moves the terms
    quotient.add(part, 1);
    if (fold_division(affine, index, quotient, part, *divisor / *inner)) return true;
  }
  return false;
}

}  // namespace

Affine fold_mods(Affine affine, const Ranges& ranges) {
  for (size_t i = 0; i < affine.terms.size(); ++i) {
    if (fold_one(affine, i, ranges)) i = static_cast<size_t>(-1);
  }
  return affine;
}

namespace {

std::optional<Range> range_of_atom(const Expr& atom, const Ranges& ranges) {
  const auto arg = [&](size_t i) { return range_of(atom->args[i], ranges); };
  switch (atom->op) {
    case ExprOp::kVar: {
      const Range* range = ranges.find(atom->var);
      return range ? std::optional<Range>(*range) : std::nullopt;
    }
    case ExprOp::kFloorDiv: {
      const int64_t* divisor = te::as_int(atom->args[1]);
      const std::optional<Range> value = arg(0);
      if (!divisor || *divisor <= 0 || !value) return std::nullopt;
      return Range{floor_divide(value->low, *divisor), floor_divide(value->high, *divisor)};
    }
    case ExprOp::kFloorMod: {
      const int64_t* divisor = te::as_int(atom->args[1]);
      if (!divisor || *divisor <= 0) return std::nullopt;
      return Range{0, *divisor - 1};
    }
    case ExprOp::kMin:
    case ExprOp::kMax: {
      const std::optional<Range> a = arg(0), b = arg(1);
      if (!a || !b) return std::nullopt;
      if (atom->op == ExprOp::kMin) return Range{std::min(a->low, b->low), std::min(a->high, b->high)};
      return Range{std::max(a->low, b->low), std::max(a->high, b->high)};
    }
    case ExprOp::kSelect: {
      const std::optional<Range> a = arg(1), b = arg(2);
      if (!a || !b) return std::nullopt;
      return Range{std::min(a->low, b->low), std::max(a->high, b->high)};
    }
    case ExprOp::kMul: {
      const std::optional<Range> a = arg(0), b = arg(1);
      if (!a || !b) return std::nullopt;
      const __int128 p[4] = {static_cast<__int128>(a->low) * b->low, static_cast<__int128>(a->low) * b->high,
                             static_cast<__int128>(a->high) * b->low,
                             static_cast<__int128>(a->high) * b->high};
      return checked(*std::min_element(p, p + 4), *std::max_element(p, p + 4));
    }
    case ExprOp::kCheckIndex: {
      const std::optional<Range> extent = arg(1);
      return extent ? std::optional<Range>(Range{0, std::max<int64_t>(extent->high - 1, 0)}) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Range> range_of(const Affine& affine, const Ranges& ranges) {
  const Affine folded = fold_mods(affine, ranges);
  __int128 low = folded.constant, high = folded.constant;
  for (const Affine::Term& term : folded.terms) {
    const std::optional<Range> range = range_of_atom(term.atom, ranges);
    if (!range) return std::nullopt;
    const __int128 a = static_cast<__int128>(range->low) * term.coefficient;
    const __int128 b = static_cast<__int128>(range->high) * term.coefficient;
    low += std::min(a, b);
    high += std::max(a, b);
  }
  return checked(low, high);
}

std::optional<Range> range_of(const Expr& expr, const Ranges& ranges) {
  if (!scalar_index(expr)) return std::nullopt;
  return range_of(to_affine(expr, ranges), ranges);
}

Expr to_expr(const Affine& affine, const Ranges& ranges) {
  const Affine folded = fold_mods(affine, ranges);
  Expr sum;
  for (const Affine::Term& term : folded.terms) {
    const Expr part = term.coefficient == 1 ? term.atom : term.atom * Expr(term.coefficient);
    sum = sum ? sum + part : part;
  }
  if (!sum) return Expr(folded.constant);
  return folded.constant == 0 ? sum : sum + Expr(folded.constant);
}

namespace {

// Bounds by plain interval arithmetic over the tree, as a reader without a normal form finds them.
std::optional<Range> tree_range(const Expr& expr, const Ranges& ranges) {
  if (expr->op == ExprOp::kIntImm) return Range{expr->int_value, expr->int_value};
  if (expr->op != ExprOp::kAdd && expr->op != ExprOp::kSub && expr->op != ExprOp::kMul &&
      expr->op != ExprOp::kFloorDiv && expr->op != ExprOp::kFloorMod) {
    return range_of_atom(expr, ranges);
  }
  const std::optional<Range> a = tree_range(expr->args[0], ranges), b = tree_range(expr->args[1], ranges);
  if (!a || !b) return std::nullopt;
  switch (expr->op) {
    case ExprOp::kAdd:
      return checked(static_cast<__int128>(a->low) + b->low, static_cast<__int128>(a->high) + b->high);
    case ExprOp::kSub:
      return checked(static_cast<__int128>(a->low) - b->high, static_cast<__int128>(a->high) - b->low);
    case ExprOp::kMul: {
      const __int128 p[4] = {static_cast<__int128>(a->low) * b->low, static_cast<__int128>(a->low) * b->high,
                             static_cast<__int128>(a->high) * b->low,
                             static_cast<__int128>(a->high) * b->high};
      return checked(*std::min_element(p, p + 4), *std::max_element(p, p + 4));
    }
    default:
      break;
  }
  if (b->low != b->high || b->low <= 0) return std::nullopt;
  if (expr->op == ExprOp::kFloorDiv)
    return Range{floor_divide(a->low, b->low), floor_divide(a->high, b->low)};
  return a->low >= 0 && a->high < b->low ? *a : Range{0, b->low - 1};
}

}  // namespace

bool has_division(const Expr& expr) {
  bool found = false;
  te::for_each_expr(expr, [&](const Expr& part) {
    found = found || part->op == ExprOp::kFloorDiv || part->op == ExprOp::kFloorMod;
  });
  return found;
}

Expr bounded_form(const Expr& expr, const Ranges& ranges) {
  Expr normal = to_expr(to_affine(expr, ranges), ranges);
  if (!has_division(normal)) return normal;
  const std::optional<Range> own = tree_range(expr, ranges), other = tree_range(normal, ranges);
  if (!own || (other && other->low >= own->low && other->high <= own->high)) return normal;
  return rebuild(expr, ranges);
}

Expr normalize(const Expr& expr, const Ranges& ranges) {
  if (scalar_index(expr)) return bounded_form(expr, ranges);
  if (expr->type.dtype == DType::kBool && expr->op != ExprOp::kIntImm) {
    if (std::optional<bool> known = decide(expr, ranges))
      return te::int_imm(DType::kBool, *known, expr->type.lanes);
  }
  return rebuild(expr, ranges);
}

}  // namespace tensormill::schedule
