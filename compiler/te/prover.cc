#include "compiler/te/prover.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "compiler/te/scalar_ops.h"
#include "compiler/te/simplifier.h"

namespace tensormill::te {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
constexpr int64_t kIndexLimit = int64_t{1} << 47;
constexpr __int128 kHuge = static_cast<__int128>(1) << 100;

Range anything() { return {kLowest, kHighest, false, false}; }
Range index_range() { return {-kIndexLimit, kIndexLimit, false, false}; }
Range between(__int128 low, __int128 high) { return {low, high, true, true}; }
bool fits(const Range& range) { return range.low >= kLowest && range.high <= kHighest; }

__int128 clamp(__int128 value) { return std::clamp(value, -kHuge, kHuge); }

__int128 floor_div(__int128 a, __int128 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

Range join(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), a.known_low && b.known_low,
          a.known_high && b.known_high};
}

/// An end of min(a, b) is known when the end of either is, as long as the known one is what counts.
Range min_range(const Range& a, const Range& b) {
  const bool known_high = (a.known_high && a.high <= b.high) || (b.known_high && b.high <= a.high);
  return {std::min(a.low, b.low), std::min(a.high, b.high), a.known_low && b.known_low, known_high};
}

Range max_range(const Range& a, const Range& b) {
  const bool known_low = (a.known_low && a.low >= b.low) || (b.known_low && b.low >= a.low);
  return {std::max(a.low, b.low), std::max(a.high, b.high), known_low, a.known_high && b.known_high};
}

Range product_range(const Range& a, const Range& b) {
  const __int128 corners[4] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  const bool known = a.known_low && a.known_high && b.known_low && b.known_high;
  const bool nonnegative = a.low >= 0 && b.low >= 0 && a.known_low && b.known_low;
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4),
          known || nonnegative, known};
}

Range cast_range(DType from) {
  if (from == DType::kBool) return between(0, 1);
  const DTypeInfo& info = dtype_info(from);
  if (info.is_float || info.bits == 64) return anything();
  const __int128 one = 1;
  return info.is_signed ? between(-(one << (info.bits - 1)), (one << (info.bits - 1)) - 1)
                        : between(0, (one << info.bits) - 1);
}

bool is_remainder(const Term& term) { return term.atom->op == ExprOp::kFloorMod; }

bool is_floordiv(const Term& term) { return term.atom->op == ExprOp::kFloorDiv; }

auto count_remainders(const Linear& linear) {
  return std::count_if(linear.terms.begin(), linear.terms.end(), is_remainder);
}

/// check_index(i, 1) is 0: no way for a search to go.
void drop_only_places(Linear& linear) {
  std::erase_if(linear.terms, [](const Term& term) {
    const int64_t* extent = term.atom->op == ExprOp::kCheckIndex ? as_int(term.atom->args[1]) : nullptr;
    return extent != nullptr && *extent == 1;
  });
}

}  // namespace

/// Of a value that is in int64: it has wrapped when the sum is not, or, of integers, there is none then.
Range Prover::wrapped(const Range& range) const {
  if (fits(range)) return range;
  if (!context_.integers_ || range.high < kLowest || range.low > kHighest) return anything();
  return {std::max<__int128>(range.low, kLowest), std::min<__int128>(range.high, kHighest),
          range.known_low && range.low >= kLowest, range.known_high && range.high <= kHighest};
}

Range Prover::linear_range(const Linear& linear) const {
  Range sum = between(linear.constant, linear.constant);
  for (const Term& term : linear.terms) {
    const Range atom = atom_range(term.atom);
    const __int128 by = term.coefficient;
    const bool up = by > 0;
    sum.low = clamp(sum.low + clamp(by * (up ? atom.low : atom.high)));
    sum.high = clamp(sum.high + clamp(by * (up ? atom.high : atom.low)));
    sum.known_low = sum.known_low && (up ? atom.known_low : atom.known_high);
    sum.known_high = sum.known_high && (up ? atom.known_high : atom.known_low);
  }
  return sum;
}

bool Prover::is_exact(const Linear& linear) const {
  if (linear.overflow) return false;
  if (context_.integers_) return true;
  if (linear.terms.size() == 1 && linear.terms[0].coefficient == 1 && linear.constant == 0) return true;
  return fits(linear_range(linear));
}

Range Prover::range(const Expr& expr) const {
  if (expr->type != Type{}) return anything();
  Linear linear = to_linear(expr);
  recombine(linear);
  split_remainders(linear);
  return linear.overflow ? anything() : wrapped(linear_range(linear));
}

Range Prover::division_range(const Expr& atom) const {
  const bool floors = atom->op == ExprOp::kFloorDiv || atom->op == ExprOp::kFloorMod;
  const bool quotient = atom->op == ExprOp::kFloorDiv || atom->op == ExprOp::kDiv;
  const Range a = range(atom->args[0]), b = range(atom->args[1]);
  // What contradicts itself leaves no divisor, of which nothing needs to be said.
  if (b.low <= 0 || b.high < b.low || (!floors && a.low < 0)) return anything();
  if (quotient) {
    const __int128 low = std::min(floor_div(a.low, b.low), floor_div(a.low, b.high));
    const __int128 high = std::max(floor_div(a.high, b.low), floor_div(a.high, b.high));
    const bool known_divisor = b.known_low && b.known_high;
    return {low, high, a.known_low && (known_divisor || a.low >= 0), a.known_high && b.known_low};
  }
  if (b.low == b.high && floor_div(a.low, b.low) == floor_div(a.high, b.low)) {
    const __int128 start = floor_div(a.low, b.low) * b.low;
    return {a.low - start, a.high - start, a.known_low && a.known_high, a.known_low && a.known_high};
  }
  Range rest{0, b.high - 1, true, b.known_high};
  if (a.low >= 0 && a.known_low && a.high < rest.high) rest = {0, a.high, true, a.known_high};
  return rest;
}

Range Prover::atom_range(const Expr& atom) const {
  if (atom->type != Type{}) return anything();
  switch (atom->op) {
    case ExprOp::kIntImm:
      return between(atom->int_value, atom->int_value);
    case ExprOp::kVar: {
      const auto found = context_.ranges_.find(atom->var.get());
      if (found == context_.ranges_.end()) return index_range();
      const Interval& ends = found->second.range;
      const Range missing = found->second.is_index ? index_range() : anything();
      return {ends.low ? *ends.low : missing.low, ends.high ? *ends.high : missing.high, ends.low.has_value(),
              ends.high.has_value()};
    }
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod:
    case ExprOp::kDiv:
    case ExprOp::kMod:
      return wrapped(division_range(atom));
    case ExprOp::kMin:
      return min_range(range(atom->args[0]), range(atom->args[1]));
    case ExprOp::kMax:
      return max_range(range(atom->args[0]), range(atom->args[1]));
    case ExprOp::kSelect:
      return join(range(atom->args[1]), range(atom->args[2]));
    case ExprOp::kMul:
      return wrapped(product_range(range(atom->args[0]), range(atom->args[1])));
    case ExprOp::kCast:
      return cast_range(atom->args[0]->type.dtype);
    case ExprOp::kCheckIndex: {
      const Range extent = range(atom->args[1]);
      return {0, std::max<__int128>(0, extent.high - 1), true, extent.known_high};
    }
    case ExprOp::kBitAnd: {
      const int64_t* mask = as_int(atom->args[1]);
      return mask != nullptr && *mask >= 0 ? between(0, *mask) : anything();
    }
    case ExprOp::kAbs: {
      const Range a = range(atom->args[0]);
      if (a.low == kLowest) return anything();
      const bool known = a.known_low && a.known_high;
      return {0, std::max(a.high, -a.low), true, known};
    }
    default:
      return anything();
  }
}

bool Prover::nonpositive(Linear linear, int depth) {
  if (--steps_ < 0 || linear.overflow) return false;
  const LinearFilter exact = [this](const Linear& whole) { return is_exact(whole); };
  recombine(linear, exact);
  const bool may_split = depth > 0 && std::any_of(linear.terms.begin(), linear.terms.end(), is_floordiv);
  const Linear whole = may_split ? linear : Linear();
  split_remainders(linear, exact);
  drop_only_places(linear);
  const Range range = linear_range(linear);
  if (range.high <= 0) return true;
  if (may_split && count_remainders(linear) != count_remainders(whole) && by_dividend(whole)) return true;
  if (range.low > 0 || depth == 0 || linear.is_constant()) return false;
  met_remainder_ |= std::any_of(linear.terms.begin(), linear.terms.end(), is_remainder);
  // One fact or two and the ranges of the rest are often enough; the cases of many clamps, and long ways in
  // circles, would use up the steps.
  for (int facts = 1; depth == kMaxDepth && facts <= 2; ++facts) {
    if (by_facts(linear, facts)) return true;
    steps_ = kMaxSteps;
  }
  return by_cases(linear, depth) || by_parts(linear, depth) || by_facts(linear, depth) ||
         by_check(linear, depth) || by_quotient(linear, depth) || by_division(linear, depth) ||
         (remainders_ && (by_end(linear, depth) || by_remainder(linear, depth) || by_digits(linear, depth)));
}

/// `linear` with one term replaced by coefficient * value; marked as overflown where the value may wrap.
Linear Prover::replaced(const Linear& linear, size_t index, const Expr& value) const {
  Linear result = linear;
  const Term term = result.take(index);
  const Linear other = to_linear(value);
  result.add(other, term.coefficient);
  result.overflow |= !is_exact(other);
  return result;
}

bool Prover::by_cases(const Linear& linear, int depth) {
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const Expr& atom = linear.terms[i].atom;
    if (atom->op == ExprOp::kMin || atom->op == ExprOp::kMax) {
      const bool both = (atom->op == ExprOp::kMax) == (linear.terms[i].coefficient > 0);
      const bool first = nonpositive(replaced(linear, i, atom->args[0]), depth - 1);
      if (first != both) {
        if (first) return true;
        continue;
      }
      if (nonpositive(replaced(linear, i, atom->args[1]), depth - 1)) return true;
    } else if (atom->op == ExprOp::kSelect && atom->args[0]->type.lanes == 1) {
      BoundsContext if_true = context_, if_false = context_;
      if_true.assume(atom->args[0]);
      if_false.assume(logical_not(atom->args[0]));
      Prover first(if_true), second(if_false);
      first.steps_ = second.steps_ = steps_ / 2;
      first.remainders_ = second.remainders_ = remainders_;
      first.parts_ = second.parts_ = parts_;
      if (first.nonpositive(replaced(linear, i, atom->args[1]), depth - 1) &&
          second.nonpositive(replaced(linear, i, atom->args[2]), depth - 1)) {
        return true;
      }
    }
  }
  return false;
}

/// `linear` with x as c * floordiv(x, c) + floormod(x, c), where `atom` is the latter and stands nowhere yet.
Linear Prover::with_remainder(const Linear& linear, const Expr& atom) const {
  if (atom->op != ExprOp::kFloorMod || linear.coefficient_of(atom) != 0) return linear;
  const int64_t* c = as_int(atom->args[1]);
  const int64_t times = linear.coefficient_of(atom->args[0]);
  int64_t scaled = 0;
  if (c == nullptr || *c <= 0 || times == 0 || __builtin_mul_overflow(times, *c, &scaled)) return linear;
  Linear result = linear;
  result.add(atom->args[0], -times);
  result.add(atom, times);
  result.add(floordiv(atom->args[0], atom->args[1]), scaled);
  return result;
}

/// linear <= k * fact + rest with k > 0 and rest <= 0: chosen so that a term cancels.
bool Prover::by_facts(const Linear& linear, int depth) {
  for (auto fact = context_.facts_.rbegin(); fact != context_.facts_.rend(); ++fact) {
    const Linear& known = *fact->nonpositive;
    met_remainder_ |= std::any_of(known.terms.begin(), known.terms.end(), is_remainder);
    int64_t last = 0;
    for (const Term& term : known.terms) {
      const bool takes_remainder = remainders_ && term.atom->op == ExprOp::kFloorMod;
      Linear rest = takes_remainder ? with_remainder(linear, term.atom) : Linear();
      const int64_t mine = (takes_remainder ? rest : linear).coefficient_of(term.atom);
      if (mine == 0 || mine == kLowest || (mine > 0) != (term.coefficient > 0) ||
          mine % term.coefficient != 0)
        continue;
      const int64_t times = mine / term.coefficient;
      if (times == last) continue;
      last = times;
      if (!takes_remainder) rest = linear;
      rest.add(known, -times);
      if (nonpositive(std::move(rest), depth - 1)) return true;
    }
  }
  return false;
}

/// by * part + rest, where `by` is the coefficient of a quotient and divides all of the part, is nonpositive
/// where part <= m and by * m + rest <= 0: two short proofs, each of which uses the facts about its own
/// terms, where one proof would have to find all of them on one way. by_quotient shows the former, as nothing
/// else is in it.
bool Prover::by_parts(const Linear& linear, int depth) {
  constexpr int kMaxTries = 3;
  for (const Term& quotient : linear.terms) {
    if (quotient.atom->op != ExprOp::kFloorDiv || quotient.coefficient == kLowest) continue;
    const int64_t by = std::abs(quotient.coefficient);
    Linear part, rest;
    for (const Term& term : linear.terms) {
      const bool divides = term.coefficient % by == 0;
      (divides ? part : rest).add(term.atom, divides ? term.coefficient / by : term.coefficient);
    }
    if (rest.is_constant()) continue;
    met_part_ = true;
    if (!parts_) return false;
    rest.constant = linear.constant;
    const Range all = linear_range(part), others = linear_range(rest);
    // Below the first m the rest's own range would do, above the last one it is positive everywhere.
    const __int128 first = std::max(all.low, -floor_div(others.high + by - 1, by));
    const __int128 last =
        std::min({all.high - 1, -floor_div(others.low + by - 1, by), first + kMaxTries - 1});
    if (first < kLowest || last > kHighest) continue;
    for (auto m = static_cast<int64_t>(first); m <= last; ++m) {
      Linear above = part;
      if (__builtin_sub_overflow(0, m, &above.constant)) break;
      if (!nonpositive(std::move(above), depth - 1)) continue;
      int64_t most = 0;
      if (__builtin_mul_overflow(by, m, &most)) break;
      rest.add_constant(most);
      if (nonpositive(std::move(rest), depth - 1)) return true;
      break;
    }
  }
  return false;
}

/// by_quotient with ranges alone, for a quotient and its dividend of opposite signs: floordiv(t + 1, 2) <= t
/// is t >= 0, which remainders in the dividend's place do not tell.
bool Prover::by_dividend(const Linear& linear) {
  const int steps = steps_;
  const bool proven = by_quotient(linear, 1);
  steps_ = steps;
  return proven;
}

/// floordiv(x, c) <= m is x <= c*m + c - 1, and floordiv(x, c) >= m is x >= c*m: exact where the quotient's
/// coefficient divides all others.
bool Prover::by_quotient(const Linear& linear, int depth) {
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    if (linear.terms[i].atom->op != ExprOp::kFloorDiv || linear.terms[i].coefficient == kLowest) continue;
    const int64_t* c = as_int(linear.terms[i].atom->args[1]);
    const Linear dividend = to_linear(linear.terms[i].atom->args[0]);
    if (c == nullptr || *c <= 0 || !is_exact(dividend)) continue;
    Linear others = linear;
    const int64_t times = others.take(i).coefficient, by = std::abs(times);
    const auto odd = [by](const Term& term) { return term.coefficient % by != 0; };
    if (std::any_of(others.terms.begin(), others.terms.end(), odd)) continue;
    for (Term& term : others.terms) term.coefficient /= by;
    // sum + constant <= 0 with a sum that is a multiple of `by`: the constant rounds up.
    others.constant = wrapping_neg(signed_floordiv(wrapping_neg(others.constant), by));
    Linear rest;
    rest.add(dividend, times > 0 ? 1 : -1);
    rest.add(others, *c);
    if (times > 0) rest.add_constant(1 - *c);
    if (nonpositive(std::move(rest), depth - 1)) return true;
  }
  return false;
}

/// x - c < c * floordiv(x, c) <= x
bool Prover::by_division(const Linear& linear, int depth) {
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const Expr& atom = linear.terms[i].atom;
    if (atom->op != ExprOp::kFloorDiv) continue;
    const int64_t* c = as_int(atom->args[1]);
    if (c == nullptr || *c <= 0 || linear.terms[i].coefficient % *c != 0) continue;
    const Linear dividend = to_linear(atom->args[0]);
    if (!is_exact(dividend)) continue;
    Linear rest = linear;
    const int64_t times = rest.take(i).coefficient / *c;
    rest.add(dividend, times);
    int64_t slack = 0;
    if (times < 0 && __builtin_mul_overflow(-times, *c - 1, &slack)) continue;
    rest.add_constant(slack);
    if (nonpositive(std::move(rest), depth - 1)) return true;
  }
  return false;
}

/// A sum whose range passes 0 by so much that one quotient's end must be nearer than its own range says, as
/// facts about its dividend may: floordiv(16*o + i, 21)*3 + floormod(o + i, 3) <= 5 where 16*o + i <= 36.
bool Prover::by_end(const Linear& linear, int depth) {
  const Range whole = linear_range(linear);
  if (linear.terms.size() < 2 || whole.high >= kHuge) return false;
  for (const Term& term : linear.terms) {
    if (term.atom->op != ExprOp::kFloorDiv || term.coefficient == kLowest) continue;
    const Range own = atom_range(term.atom);
    const bool up = term.coefficient > 0;
    const __int128 by = std::abs(term.coefficient);
    const __int128 nearer = (whole.high + by - 1) / by;
    const __int128 end = up ? own.high - nearer : own.low + nearer;
    if (end < own.low || end > own.high || end == kLowest) continue;
    Linear rest;
    rest.add(term.atom, up ? 1 : -1);
    rest.add_constant(static_cast<int64_t>(up ? -end : end));
    if (nonpositive(std::move(rest), depth - 1)) return true;
  }
  return false;
}

/// floormod(x, c) is x - c * floordiv(x, c), where that takes away some of an x that stands beside it.
bool Prover::by_remainder(const Linear& linear, int depth) {
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const Expr& atom = linear.terms[i].atom;
    const int64_t times = linear.terms[i].coefficient;
    if (atom->op != ExprOp::kFloorMod || times == kLowest) continue;
    const int64_t* c = as_int(atom->args[1]);
    int64_t whole = 0;
    if (c == nullptr || *c <= 0 || __builtin_mul_overflow(-times, *c, &whole)) continue;
    const Linear dividend = to_linear(atom->args[0]);
    const auto cancels = [&](const Term& term) {
      const int64_t mine = linear.coefficient_of(term.atom);
      return mine != 0 && (mine > 0) != ((term.coefficient > 0) == (times > 0));
    };
    if (!is_exact(dividend) || std::none_of(dividend.terms.begin(), dividend.terms.end(), cancels)) continue;
    Linear rest = linear;
    rest.take(i);
    rest.add(dividend, times);
    rest.add(floordiv(atom->args[0], atom->args[1]), whole);
    if (nonpositive(std::move(rest), depth - 1)) return true;
  }
  return false;
}

/// floormod(x, d * e) is floormod(x, d) + d * floormod(floordiv(x, d), e), where the latter stands beside it.
bool Prover::by_digits(const Linear& linear, int depth) {
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const Expr& both = linear.terms[i].atom;
    const int64_t* c = both->op == ExprOp::kFloorMod ? as_int(both->args[1]) : nullptr;
    if (c == nullptr || *c <= 0) continue;
    for (const Term& term : linear.terms) {
      const Expr& high = term.atom;
      if (high->op != ExprOp::kFloorMod || high->args[0]->op != ExprOp::kFloorDiv) continue;
      const int64_t* e = as_int(high->args[1]);
      const int64_t* d = as_int(high->args[0]->args[1]);
      if (d == nullptr || e == nullptr || *d <= 0 || *e <= 0 || *c / *d != *e || *c % *d != 0 ||
          !equal(high->args[0]->args[0], both->args[0])) {
        continue;
      }
      Linear rest = linear;
      const int64_t times = rest.take(i).coefficient;
      int64_t scaled = 0;
      if (__builtin_mul_overflow(times, *d, &scaled)) continue;
      rest.add(floormod(both->args[0], Expr(*d)), times);
      rest.add(high, scaled);
      if (nonpositive(std::move(rest), depth - 1)) return true;
    }
  }
  return false;
}

/// check_index(i, extent) <= extent - 1 where the extent is positive.
bool Prover::by_check(const Linear& linear, int depth) {
  for (size_t i = 0; i < linear.terms.size(); ++i) {
    const Expr& atom = linear.terms[i].atom;
    if (atom->op != ExprOp::kCheckIndex || linear.terms[i].coefficient < 0) continue;
    if (range(atom->args[1]).low < 1) continue;
    if (nonpositive(replaced(linear, i, atom->args[1] - 1), depth - 1)) return true;
  }
  return false;
}

}  // namespace tensormill::te
