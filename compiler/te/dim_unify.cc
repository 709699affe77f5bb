// Equations of dims, solved for one symbol.

#include <limits>

#include "compiler/te/dim_builder.h"
#include "compiler/te/dim_facts.h"
#include "compiler/te/dim_proof.h"

namespace tensormill::te {
namespace {

/// zero == 0 without what all its terms are multiples of and what is known to be positive.
Dim without_positive_factors(const Dim& zero, const DimFacts& facts) {
  std::vector<Atom> positive;
  for (const Atom& atom : common_factors(zero)) {
    if (facts.bounds(of_atom(atom)).low.value_or(0) > 0) positive.push_back(atom);
  }
  return without_factors(zero, positive);
}

struct Candidate {
  std::string symbol;
  Dim value;
  SolvingOrder order;
};

/// zero == 0 solved for the one of its symbols, of those for which that is possible, that comes last.
std::optional<Candidate> solve(const Dim& zero, const DimFacts& facts) {
  std::optional<Candidate> best;
  for (const std::string& name : zero.symbols()) {
    const int64_t coefficient = linear_coefficient(zero, name);
    const SolvingOrder order = solving_order(zero, name, facts);
    if (coefficient == 0 || (best && order <= best->order)) continue;
    Dim rest = zero - Dim::symbol(name) * Dim(coefficient);
    if (coefficient > 0) rest = -rest;
    const int64_t by = std::abs(coefficient);
    if (by != 1 && facts.prove_divisible(rest, by) != Truth::kProven) continue;
    best = Candidate{name, by == 1 ? rest : floordiv(rest, by), order};
  }
  return best;
}

}  // namespace

SolvingOrder solving_order(const Dim& zero, const std::string& symbol, const DimFacts& facts) {
  const bool is_positive = linear_coefficient(zero, symbol) > 0;
  const DimFacts::Symbol* declared = facts.find(symbol);
  SolvingOrder order{true, declared != nullptr ? declared->order : std::numeric_limits<size_t>::max()};
  for (const DimTerm& term : zero.terms()) {
    const bool is_own = term.factors.size() == 1 && term.factors[0]->name == symbol &&
                        term.factors[0]->kind == DimAtom::Kind::kSymbol;
    if (!is_own && (term.coefficient > 0) == is_positive) order.is_sum = false;
  }
  return order;
}

Unified unify(const Dim& a, const Dim& b, const DimFacts& facts) {
  const Truth truth = facts.prove_equal(a, b);
  if (truth == Truth::kProven) return {Unified::Kind::kEqual, {}, {}, {}};
  const Unified conflict{Unified::Kind::kConflict, {}, {}, {}};
  if (truth == Truth::kRefuted) return conflict;
  const Dim zero = without_positive_factors(without_content(facts.normalized(a - b)), facts);
  std::optional<Candidate> found = solve(zero, facts);
  if (!found) return {Unified::Kind::kGuard, {}, {}, {}};
  Unified result{Unified::Kind::kSolved, found->symbol, found->value, {}};
  facts.express(result.symbol, result.value);
  // What the solution holds may be a part of the symbol itself: in the caller's symbols it is no solution.
  if (result.value.mentions(result.symbol)) return {Unified::Kind::kGuard, {}, {}, {}};
  const DimFacts::Symbol* symbol = facts.find(result.symbol);
  const auto require = [&](const Dim& least, const Dim& most) {
    const Truth known = facts.prove_le(least, most);
    if (known != Truth::kProven) result.conditions.emplace_back(least, most);
    return known != Truth::kRefuted;
  };
  if (symbol != nullptr && symbol->low && !require(*symbol->low, result.value)) return conflict;
  if (symbol != nullptr && symbol->high && !require(result.value, *symbol->high)) return conflict;
  return result;
}

}  // namespace tensormill::te
