// Quotients, remainders, minima and maxima of dims in normal form.

#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/te/dim_builder.h"
#include "compiler/te/scalar_ops.h"
#include "runtime/base/error.h"

namespace tensormill::te {
namespace {

using AtomKind = DimAtom::Kind;

/// The one factor of a term without a coefficient, where it is of that kind.
const DimAtom* unit_factor(const DimTerm& term, AtomKind kind) {
  return term.coefficient == 1 && term.factors.size() == 1 && term.factors[0]->kind == kind
             ? term.factors[0].get()
             : nullptr;
}

int64_t leading_coefficient(const Dim& dim) {
  return dim.is_constant() ? dim.constant() : dim.terms()[0].coefficient;
}

/// floor((floor(x / c) + y) / d) = floor((x + c*y) / (c*d)) for an integer y, d > 0 and any c but 0.
std::optional<Dim> joined_quotient(const Dim& rest, int64_t divisor) {
  for (const DimTerm& term : rest.terms()) {
    const DimAtom* inner = unit_factor(term, AtomKind::kFloorDiv);
    if (inner == nullptr) continue;
    const Dim& by = inner->args[1];
    // A number that would not fit: as it stands, the quotient is right, too.
    constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
    if (by.constant() > kLimit || by.constant() < -kLimit || divisor > kLimit) continue;
    return floordiv(inner->args[0] + by * (rest - of_term(term)), by * divisor);
  }
  return std::nullopt;
}

/// Rounded down, for divisor > 1. What is left as an atom has coefficients below the divisor and without a
/// common factor, the first of them positive.
Dim divided_by_number(const Dim& a, int64_t divisor) {
  std::vector<DimTerm> whole, rest;
  for (const DimTerm& term : a.terms()) {
    const int64_t quotient = term.coefficient / divisor, left = term.coefficient % divisor;
    if (quotient != 0) whole.push_back({quotient, term.factors});
    if (left != 0) rest.push_back({left, term.factors});
  }
  const Dim quotient = DimBuilder::sum(std::move(whole), signed_floordiv(a.constant(), divisor));
  if (rest.empty()) return quotient;
  Dim remaining = DimBuilder::sum(std::move(rest), signed_floormod(a.constant(), divisor));
  const int64_t common = std::gcd(content(remaining, false), divisor);
  if (common > 1) {
    const int64_t constant = signed_floordiv(remaining.constant(), common);
    remaining = divided_exactly(DimBuilder::without_constant(remaining), common) + constant;
    divisor /= common;
  }
  // floor(-x / d) = -floor((x + d - 1) / d)
  if (leading_coefficient(remaining) < 0) return quotient - floordiv(-remaining + (divisor - 1), divisor);
  if (std::optional<Dim> joined = joined_quotient(remaining, divisor)) return quotient + *joined;
  return quotient + of_atom(make_atom(AtomKind::kFloorDiv, {}, {remaining, Dim(divisor)}));
}

/// Rounded down, for a divisor with terms, the first of which has a positive coefficient.
Dim divided_by_terms(Dim a, Dim b) {
  Dim quotient;
  if (b.terms().size() == 1 && b.constant() == 0) {
    // What one monomial divides leaves term by term; the rest stays under the bar.
    const DimTerm& divisor = b.terms()[0];
    for (const DimTerm& term : a.terms()) {
      const auto rest = without_factors(term.factors, divisor.factors);
      const int64_t times = term.coefficient / divisor.coefficient;
      if (!rest || times == 0) continue;
      Dim part = times;
      for (const Atom& atom : *rest) part *= of_atom(atom);
      quotient += part;
    }
    a -= quotient * b;
  } else if (std::optional<Dim> exact = exact_quotient(a, b)) {
    return *exact;
  }
  if (a == Dim(0)) return quotient;
  const int64_t common = std::gcd(content(a), content(b));
  if (common > 1) {
    a = divided_exactly(a, common);
    b = divided_exactly(b, common);
  }
  const std::vector<Atom> mine = common_factors(a), others = common_factors(b);
  std::vector<Atom> both;
  std::set_intersection(mine.begin(), mine.end(), others.begin(), others.end(), std::back_inserter(both),
                        [](const Atom& x, const Atom& y) { return compare(x, y) < 0; });
  if (!both.empty()) return quotient + floordiv(without_factors(a, both), without_factors(b, both));
  return quotient + of_atom(make_atom(AtomKind::kFloorDiv, {}, {std::move(a), std::move(b)}));
}

/// k * min(x, y) as the operands k*x, k*y, where the sign makes it an extremum of `kind`; alone otherwise,
/// and where there are several in the sum: their operands would be all combinations.
std::vector<Dim> flattened(const Dim& arg, AtomKind kind) {
  const DimTerm* found = nullptr;
  for (const DimTerm& term : arg.terms()) {
    if (term.factors.size() != 1) continue;
    const DimAtom& atom = *term.factors[0];
    if (atom.kind != AtomKind::kMin && atom.kind != AtomKind::kMax) continue;
    if ((atom.kind == kind) != (term.coefficient > 0)) continue;
    if (found != nullptr) return {arg};
    found = &term;
  }
  if (found == nullptr) return {arg};
  const Dim rest = arg - of_term(*found);
  std::vector<Dim> all;
  for (const Dim& inner : found->factors[0]->args) {
    for (Dim& part : flattened(rest + inner * Dim(found->coefficient), kind)) all.push_back(std::move(part));
    if (all.size() > Dim::kMaxSize / 8)
      throw Error(ErrorCode::kTooLarge, "a formula of an extent has too many cases");
  }
  return all;
}

/// Leaves out operands that another one makes superfluous: those that differ from it by a constant.
std::vector<Dim> distinct(std::vector<Dim> args, AtomKind kind) {
  // Neighbours differ in their constant alone, the lowest first.
  std::sort(args.begin(), args.end());
  std::vector<Dim> kept;
  for (Dim& arg : args) {
    const bool same =
        !kept.empty() && DimBuilder::without_constant(kept.back()) == DimBuilder::without_constant(arg);
    if (!same) {
      kept.push_back(std::move(arg));
    } else if (kind == AtomKind::kMax) {
      kept.back() = std::move(arg);
    }
  }
  return kept;
}

/// The terms that are in all operands alike.
Dim common_terms(const std::vector<Dim>& args) {
  Dim common;
  for (const DimTerm& term : args[0].terms()) {
    const bool everywhere = std::all_of(args.begin(), args.end(), [&term](const Dim& arg) {
      return std::any_of(arg.terms().begin(), arg.terms().end(), [&term](const DimTerm& other) {
        return other.coefficient == term.coefficient && compare_factors(other.factors, term.factors) == 0;
      });
    });
    if (everywhere) common += of_term(term);
  }
  return common;
}

/// Below 0 where -max(-x, -y) is the form to keep: by the first monomial that any operand has.
int64_t direction(const std::vector<Dim>& args) {
  const std::vector<Atom>* first = nullptr;
  __int128 total = 0;
  for (const Dim& arg : args) {
    if (arg.is_constant()) continue;
    const DimTerm& term = arg.terms()[0];
    const auto order = first == nullptr ? std::strong_ordering::less : compare_factors(term.factors, *first);
    if (order < 0) total = 0;
    if (order < 0) first = &term.factors;
    if (order <= 0) total += term.coefficient;
  }
  return total < 0 ? -1 : 1;
}

}  // namespace

int64_t content(const Dim& dim, bool with_constant) {
  // Of the smallest int64 there is no magnitude: 2^62 divides it.
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  int64_t common = !with_constant ? 0 : dim.constant() == kLowest ? kLowest / -2 : dim.constant();
  for (const DimTerm& term : dim.terms()) common = std::gcd(common, term.coefficient);
  return std::abs(common);
}

Dim divided_exactly(const Dim& dim, int64_t by) {
  std::vector<DimTerm> terms = dim.terms();
  for (DimTerm& term : terms) term.coefficient /= by;
  return DimBuilder::sum(std::move(terms), dim.constant() / by);
}

std::vector<Atom> common_factors(const Dim& dim) {
  if (dim.constant() != 0 || dim.is_constant()) return {};
  std::vector<Atom> common = dim.terms()[0].factors;
  for (const DimTerm& term : dim.terms()) {
    std::vector<Atom> both;
    std::set_intersection(common.begin(), common.end(), term.factors.begin(), term.factors.end(),
                          std::back_inserter(both),
                          [](const Atom& x, const Atom& y) { return compare(x, y) < 0; });
    common = std::move(both);
  }
  return common;
}

Dim without_factors(const Dim& dim, const std::vector<Atom>& factors) {
  if (factors.empty()) return dim;
  std::vector<DimTerm> terms;
  int64_t constant = 0;
  for (const DimTerm& term : dim.terms()) {
    std::vector<Atom> rest = without_factors(term.factors, factors).value();
    if (rest.empty()) {
      constant = term.coefficient;
    } else {
      terms.push_back({term.coefficient, std::move(rest)});
    }
  }
  return DimBuilder::sum(std::move(terms), constant);
}

Dim without_content(const Dim& dim) {
  const int64_t common = content(dim);
  return common > 1 ? divided_exactly(dim, common) : dim;
}

int64_t linear_coefficient(const Dim& dim, const std::string& symbol) {
  for (const DimTerm& term : dim.terms()) {
    if (term.factors.size() == 1 && term.factors[0]->kind == AtomKind::kSymbol &&
        term.factors[0]->name == symbol)
      return (dim - of_term(term)).mentions(symbol) ? 0 : term.coefficient;
  }
  return 0;
}

std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  if (b.is_constant()) {
    if (b.constant() == -1) return -a;
    if (b.constant() == 0 || content(a) % b.constant() != 0) return std::nullopt;
    return divided_exactly(a, b.constant());
  }
  const DimTerm& lead = b.terms()[0];
  Dim quotient, rest = a;
  // Each step takes the leading monomial away and adds lower ones only, so that there is an end; the bound is
  // for rests that would grow on the way.
  for (int step = 0; step < 64 && !rest.is_constant(); ++step) {
    const DimTerm& term = rest.terms()[0];
    const auto factors = without_factors(term.factors, lead.factors);
    if (!factors || term.coefficient % lead.coefficient != 0) return std::nullopt;
    Dim part = term.coefficient / lead.coefficient;
    for (const Atom& atom : *factors) part *= of_atom(atom);
    quotient += part;
    rest -= part * b;
  }
  return rest == Dim(0) ? std::optional<Dim>(quotient) : std::nullopt;
}

Dim floordiv(const Dim& a, const Dim& b) {
  // Has no value, which only an evaluation can say: substitution and facts may come to it on their way.
  if (b == Dim(0)) return of_atom(make_atom(AtomKind::kFloorDiv, {}, {a, b}));
  if (leading_coefficient(b) < 0) return floordiv(-a, -b);
  if (!b.is_constant()) return divided_by_terms(a, b);
  return b.constant() == 1 ? a : divided_by_number(a, b.constant());
}

Dim floormod(const Dim& a, const Dim& b) { return a - b * floordiv(a, b); }
Dim ceildiv(const Dim& a, const Dim& b) { return floordiv(a + b - 1, b); }

Dim extremum(AtomKind kind, const std::vector<Dim>& args) {
  std::vector<Dim> all;
  for (const Dim& arg : args) {
    for (Dim& part : flattened(arg, kind)) all.push_back(std::move(part));
  }
  all = distinct(std::move(all), kind);
  if (all.size() == 1) return all[0];
  Dim common = common_terms(all);
  for (Dim& arg : all) arg -= common;
  const int64_t sign = direction(all);
  if (sign < 0) {
    for (Dim& arg : all) arg = -arg;
    kind = kind == AtomKind::kMin ? AtomKind::kMax : AtomKind::kMin;
  }
  std::sort(all.begin(), all.end());
  const int64_t shift = all[0].constant();
  int64_t scale = 0;
  for (Dim& arg : all) {
    arg -= shift;
    scale = std::gcd(scale, content(arg));
  }
  for (Dim& arg : all) arg = divided_exactly(arg, scale);
  const Dim inner = of_atom(make_atom(kind, {}, std::move(all)));
  return common + (inner * Dim(scale) + shift) * Dim(sign);
}

Dim min(const Dim& a, const Dim& b) { return extremum(AtomKind::kMin, {a, b}); }
Dim max(const Dim& a, const Dim& b) { return extremum(AtomKind::kMax, {a, b}); }

}  // namespace tensormill::te
