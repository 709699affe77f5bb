#include "compiler/te/affine.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/te/prover.h"
#include "compiler/te/scalar_ops.h"

namespace tensormill::te {

namespace {

// Ends past this are treated as unknown, so that no sum or product below can wrap.
constexpr int64_t kRangeLimit = int64_t{1} << 56;

bool scalar_index(const Expr& expr) { return expr->type == Type{}; }

std::optional<IndexRange> checked(__int128 low, __int128 high) {
  if (low < -kRangeLimit || high > kRangeLimit || low > high) return std::nullopt;
  return IndexRange{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

std::optional<IndexRange> known_range(const Linear& linear, const BoundsContext& context) {
  if (linear.overflow) return std::nullopt;
  const Range range = Prover(context).linear_range(linear);
  return range.known_low && range.known_high ? checked(range.low, range.high) : std::nullopt;
}

Linear divide(const Linear& value, int64_t divisor, const BoundsContext& context);

// floor(rest / divisor) where rest is not known to be inside [0, divisor).
Linear divide_rest(const Linear& rest, int64_t divisor, const BoundsContext& context) {
  // rest = g*y + s with g | divisor and s in [0, g): the small part cannot carry.
  for (const Term& candidate : rest.terms) {
    const int64_t g = std::abs(candidate.coefficient);
    if (g <= 1 || divisor % g != 0) continue;
    Linear large, small;
    for (const Term& term : rest.terms) {
      if (term.coefficient % g == 0) {
        large.add(term.atom, term.coefficient / g);
      } else {
        small.add(term.atom, term.coefficient);
      }
    }
    large.constant = signed_floordiv(rest.constant, g);
    small.constant = rest.constant - large.constant * g;
    const std::optional<IndexRange> range = range_of(small, context);
    if (range && range->low >= 0 && range->high < g) return divide(large, divisor / g, context);
  }
  // floor((y + floor(x / c)) / d) = floor((c*y + x) / (c*d))
  for (const Term& term : rest.terms) {
    const int64_t* inner = term.atom->op == ExprOp::kFloorDiv ? as_int(term.atom->args[1]) : nullptr;
    if (term.coefficient != 1 || !inner || *inner <= 0 || *inner >= kRangeLimit / divisor / 2) continue;
    const std::optional<IndexRange> range = range_of(rest, context);
    if (rest.terms.size() > 1 &&
        (!range || std::max(std::abs(range->low), range->high) > kRangeLimit / *inner))
      continue;
    // In the order of the terms, so that the same index reached on another way gives the same atom.
    Linear numerator;
    numerator.constant = rest.constant * *inner;
    for (const Term& part : rest.terms) {
      if (&part == &term) {
        numerator.add(to_affine(part.atom->args[0], context), 1);
      } else {
        numerator.add(part.atom, part.coefficient * *inner);
      }
    }
    return divide(numerator, *inner * divisor, context);
  }
  // In one order, so that the same index reached on another way gives the same atom.
  Linear ordered = rest;
  std::stable_sort(ordered.terms.begin(), ordered.terms.end(),
                   [](const Term& a, const Term& b) { return compare(a.atom, b.atom) < 0; });
  Linear result;
  result.add(floordiv(to_expr(ordered, context), Expr(divisor)), 1);
  return result;
}

Linear divide(const Linear& value, int64_t divisor, const BoundsContext& context) {
  if (divisor == 1) return value;
  Linear quotient, rest;
  quotient.constant = signed_floordiv(value.constant, divisor);
  rest.constant = value.constant - quotient.constant * divisor;
  for (const Term& term : value.terms) {
    const int64_t whole = term.coefficient / divisor;
    if (whole != 0) quotient.add(term.atom, whole);
    if (term.coefficient != whole * divisor) rest.add(term.atom, term.coefficient - whole * divisor);
  }
  const std::optional<IndexRange> range = range_of(rest, context);
  if (range) {
    const int64_t low = signed_floordiv(range->low, divisor);
    if (low == signed_floordiv(range->high, divisor)) {
      quotient.constant += low;
      return quotient;
    }
  }
  quotient.add(divide_rest(rest, divisor, context), 1);
  return quotient;
}

/// The normal forms of the parts of one expression. Each part is looked at once, whatever it is used for:
/// what is joined of a hundred parts is as many selects deep, with each index in it several times.
class Normalizer {
public:
  explicit Normalizer(const BoundsContext& context) : context_(context) {}
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;

  Linear affine(const Expr& expr);
  Expr bounded(const Expr& expr);
  Expr normal(const Expr& expr);

private:
  Expr rebuild(const Expr& expr);
  Expr rebuilt(const Expr& expr);
  Linear opaque(const Expr& expr);
  Linear as_atom(const Expr& expr);
  std::optional<Linear> decide_min_max(const Expr& expr);

  const BoundsContext& context_;
  // By nodes of the expression, which outlives this.
  std::unordered_map<const ExprNode*, Expr> normal_, rebuilt_;
  std::unordered_map<const ExprNode*, Linear> opaque_;
};

Expr Normalizer::rebuild(const Expr& expr) {
  if (expr->args.empty()) return expr;
  const auto [known, is_new] = rebuilt_.try_emplace(expr.get());
  if (!is_new) return known->second;
  const Expr result = rebuilt(expr);
  rebuilt_[expr.get()] = result;
  return result;
}

Expr Normalizer::rebuilt(const Expr& expr) {
  std::vector<Expr> args;
  bool changed = false;
  for (const Expr& arg : expr->args) {
    args.push_back(normal(arg));
    changed = changed || !args.back().same_as(arg);
  }
  const auto constant = [](const Expr& e) { return e->op == ExprOp::kIntImm; };
  // What is checked in what a value is not made of is checked all the same.
  if (expr->op == ExprOp::kSelect && constant(args[0])) {
    const size_t taken = args[0]->int_value != 0 ? 1 : 2;
    if (!has_check(args[3 - taken])) return args[taken];
  }
  if (expr->op == ExprOp::kBitAnd && expr->type.dtype == DType::kBool) {
    for (const size_t known : {size_t{0}, size_t{1}}) {
      if (!constant(args[known])) continue;
      if (args[known]->int_value != 0) return args[1 - known];
      if (!has_check(args[1 - known])) return args[known];
    }
  }
  if (!expr->mask) return changed ? with_args(expr, std::move(args)) : expr;
  const Expr mask = normal(expr->mask);
  if (!constant(mask))
    return changed || !mask.same_as(expr->mask) ? with_args(expr, std::move(args), mask) : expr;
  return mask->int_value != 0 ? load(expr->buffer, std::move(args)) : imm_like(expr->type, 0);
}

// min and max of operands whose difference is bounded away from zero.
std::optional<Linear> Normalizer::decide_min_max(const Expr& expr) {
  const Linear a = affine(expr->args[0]);
  const Linear b = affine(expr->args[1]);
  Linear difference = a;
  difference.add(b, -1);
  const std::optional<IndexRange> range = range_of(difference, context_);
  if (!range) return std::nullopt;
  const bool is_min = expr->op == ExprOp::kMin;
  if (range->high <= 0) return is_min ? a : b;
  if (range->low >= 0) return is_min ? b : a;
  return std::nullopt;
}

Linear Normalizer::opaque(const Expr& expr) {
  if (const auto known = opaque_.find(expr.get()); known != opaque_.end()) return known->second;
  return opaque_.emplace(expr.get(), as_atom(expr)).first->second;
}

Linear Normalizer::as_atom(const Expr& expr) {
  if (expr->op == ExprOp::kMin || expr->op == ExprOp::kMax) {
    if (std::optional<Linear> decided = decide_min_max(expr)) return *decided;
  }
  if (expr->op == ExprOp::kSelect) {
    const std::optional<bool> known = decide(expr->args[0], context_);
    if (known && !has_check(expr->args[*known ? 2 : 1])) return affine(expr->args[*known ? 1 : 2]);
  }
  Linear result;
  const Expr atom = rebuild(expr);
  if (const int64_t* value = as_int(atom)) {
    result.constant = *value;
  } else {
    result.add(atom, 1);
  }
  return result;
}

Linear Normalizer::affine(const Expr& expr) {
  Linear result;
  if (!scalar_index(expr)) {
    result.add(expr, 1);
    return result;
  }
  switch (expr->op) {
    case ExprOp::kIntImm:
      result.constant = expr->int_value;
      return result;
    case ExprOp::kVar: {
      const Interval* range = context_.find(expr->var);
      if (range != nullptr && range->is_point()) {
        result.constant = *range->low;
      } else {
        result.add(expr, 1);
      }
      return result;
    }
    case ExprOp::kAdd:
    case ExprOp::kSub:
      result = affine(expr->args[0]);
      result.add(affine(expr->args[1]), expr->op == ExprOp::kAdd ? 1 : -1);
      return result;
    case ExprOp::kNeg:
      result.add(affine(expr->args[0]), -1);
      return result;
    case ExprOp::kMul: {
      const Linear a = affine(expr->args[0]);
      const Linear b = affine(expr->args[1]);
      if (a.is_constant()) {
        result.add(b, a.constant);
      } else if (b.is_constant()) {
        result.add(a, b.constant);
      } else {
        return opaque(expr);
      }
      return result;
    }
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod: {
      const Linear divisor = affine(expr->args[1]);
      if (!divisor.is_constant() || divisor.constant <= 0 || divisor.constant > kRangeLimit)
        return opaque(expr);
      const Linear value = affine(expr->args[0]);
      Linear quotient = divide(value, divisor.constant, context_);
      if (expr->op == ExprOp::kFloorDiv) return quotient;
      result = value;
      result.add(quotient, -divisor.constant);
      return result;
    }
    default:
      return opaque(expr);
  }
}

}  // namespace

Linear to_affine(const Expr& expr, const BoundsContext& context) { return Normalizer(context).affine(expr); }

namespace {

// k such that the terms of `whole` contain k * part; 0 when there is none.
int64_t whole_multiple(const Linear& whole, const Linear& part) {
  if (part.is_constant()) return 0;
  int64_t k = 0;
  for (const Term& term : part.terms) {
    const auto found = std::find_if(whole.terms.begin(), whole.terms.end(),
                                    [&](const Term& t) { return equal(t.atom, term.atom); });
    if (found == whole.terms.end() || found->coefficient % term.coefficient != 0) return 0;
    const int64_t ratio = found->coefficient / term.coefficient;
    if (k != 0 && ratio != k) return 0;
    k = ratio;
  }
  return k;
}

// Turns k*x + q*floordiv(x, c) into k*floormod(x, c) + (q + k*c)*floordiv(x, c) where that makes q smaller.
bool fold_division(Linear& affine, size_t index, const Linear& numerator, const Expr& x, int64_t c) {
  const Term term = affine.terms[index];
  const int64_t k = whole_multiple(affine, numerator);
  if (k <= 0 || k > kRangeLimit / c || std::abs(k) > std::abs(term.coefficient)) return false;
  const int64_t left = term.coefficient + k * c;
  if (std::abs(left) >= std::abs(term.coefficient)) return false;
  affine.add(numerator, -k);
  affine.add(term.atom, left - term.coefficient);
  affine.add(floormod(x, Expr(c)), k);
  return true;
}

bool fold_one(Linear& affine, size_t index, const BoundsContext& context) {
  const Expr atom = affine.terms[index].atom;
  if (atom->op != ExprOp::kFloorDiv) return false;
  const int64_t* divisor = as_int(atom->args[1]);
  if (!divisor || *divisor <= 0) return false;
  if (fold_division(affine, index, to_affine(atom->args[0], context), atom->args[0], *divisor)) return true;
  // floordiv(x, c) is floordiv(floordiv(x, d), c/d) too.
  for (const Term& other : affine.terms) {
    if (other.atom->op != ExprOp::kFloorDiv || !equal(other.atom->args[0], atom->args[0])) continue;
    const int64_t* inner = as_int(other.atom->args[1]);
    if (!inner || *inner <= 1 || *inner >= *divisor || *divisor % *inner != 0) continue;
    Linear quotient;
    const Expr part = other.atom;  // folding moves the terms
    quotient.add(part, 1);
    if (fold_division(affine, index, quotient, part, *divisor / *inner)) return true;
  }
  return false;
}

}  // namespace

Linear fold_mods(Linear affine, const BoundsContext& context) {
  for (size_t i = 0; i < affine.terms.size(); ++i) {
    if (fold_one(affine, i, context)) i = static_cast<size_t>(-1);
  }
  return affine;
}

std::optional<IndexRange> range_of(const Linear& affine, const BoundsContext& context) {
  return known_range(fold_mods(affine, context), context);
}

std::optional<IndexRange> range_of(const Expr& expr, const BoundsContext& context) {
  if (!scalar_index(expr)) return std::nullopt;
  return range_of(to_affine(expr, context), context);
}

Expr to_expr(const Linear& affine, const BoundsContext& context) {
  const Linear folded = fold_mods(affine, context);
  Expr sum;
  for (const Term& term : folded.terms) {
    const Expr part = term.coefficient == 1 ? term.atom : term.atom * Expr(term.coefficient);
    sum = sum ? sum + part : part;
  }
  if (!sum) return Expr(folded.constant);
  return folded.constant == 0 ? sum : sum + Expr(folded.constant);
}

namespace {

// Bounds by plain interval arithmetic over the tree, as a reader without a normal form finds them.
std::optional<IndexRange> tree_range(const Expr& expr, const BoundsContext& context) {
  if (expr->op == ExprOp::kIntImm) return IndexRange{expr->int_value, expr->int_value};
  if (expr->op != ExprOp::kAdd && expr->op != ExprOp::kSub && expr->op != ExprOp::kMul &&
      expr->op != ExprOp::kFloorDiv && expr->op != ExprOp::kFloorMod) {
    Linear atom;
    atom.add(expr, 1);
    return known_range(atom, context);
  }
  const std::optional<IndexRange> a = tree_range(expr->args[0], context),
                                  b = tree_range(expr->args[1], context);
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
    return IndexRange{signed_floordiv(a->low, b->low), signed_floordiv(a->high, b->low)};
  return a->low >= 0 && a->high < b->low ? *a : IndexRange{0, b->low - 1};
}

}  // namespace

bool has_division(const Expr& expr) {
  bool found = false;
  for_each_expr(expr, [&](const Expr& part) {
    found = found || part->op == ExprOp::kFloorDiv || part->op == ExprOp::kFloorMod;
  });
  return found;
}

namespace {

Expr Normalizer::bounded(const Expr& expr) {
  Expr form = to_expr(affine(expr), context_);
  if (has_check(expr) && !has_check(form)) return rebuild(expr);
  if (!has_division(form)) return form;
  const std::optional<IndexRange> own = tree_range(expr, context_), other = tree_range(form, context_);
  if (!own || (other && other->low >= own->low && other->high <= own->high)) return form;
  return rebuild(expr);
}

Expr Normalizer::normal(const Expr& expr) {
  if (expr->args.empty() && !scalar_index(expr)) return expr;
  const auto [known, is_new] = normal_.try_emplace(expr.get());
  if (!is_new) return known->second;
  Expr result;
  if (scalar_index(expr)) {
    result = bounded(expr);
  } else {
    const bool is_condition = expr->type.dtype == DType::kBool && expr->op != ExprOp::kIntImm;
    const std::optional<bool> decided = is_condition ? decide(expr, context_) : std::nullopt;
    result = decided ? int_imm(DType::kBool, *decided, expr->type.lanes) : rebuild(expr);
  }
  normal_[expr.get()] = result;
  return result;
}

}  // namespace

Expr bounded_form(const Expr& expr, const BoundsContext& context) {
  return Normalizer(context).bounded(expr);
}

Expr normalize(const Expr& expr, const BoundsContext& context) { return Normalizer(context).normal(expr); }

}  // namespace tensormill::te
