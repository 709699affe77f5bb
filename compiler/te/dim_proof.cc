#include "compiler/te/dim_proof.h"

#include <algorithm>
#include <set>

#include "compiler/te/dim_builder.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill::te {

namespace {
constexpr size_t kMaxProofSize = 256;
}

DimProof::DimProof(const DimFacts& facts, const std::vector<Dim>& dims) : facts_(facts) {
  context_.take_integers();
  for (const Dim& dim : dims) name_atoms(dim);
  gather_facts();
  // Ends of single symbols come first: what functions and quotients are bounded by follows from them.
  std::stable_sort(known_.begin(), known_.end(),
                   [](const Dim& a, const Dim& b) { return a.size() < b.size(); });
  for (const Dim& dim : known_) assume(dim);
  bound_calls();
  for (const Atom& atom : divisions_) bound_division(*atom);
  add_products(dims);
}

/// Variables for the symbols and calls of a dim.
void DimProof::name_atoms(const Dim& dim) {
  for (const DimTerm& term : dim.terms()) {
    for (const Atom& atom : term.factors) {
      if (!named_.insert(atom).second) continue;
      for (const Dim& arg : atom->args) name_atoms(arg);
      const bool is_call = atom->kind == DimAtom::Kind::kCall;
      if (is_call || atom->kind == DimAtom::Kind::kSymbol) {
        const std::string& name = is_call ? call_text(*atom) : atom->name;
        const auto [entry, fresh] = variables_.try_emplace(name);
        if (fresh) entry->second = make_var(name);
        if (fresh && is_call) calls_.emplace(name, atom);
      } else if (atom->kind == DimAtom::Kind::kFloorDiv && !atom->args[1].is_constant()) {
        const auto same = [&atom](const Atom& other) { return compare(atom, other) == 0; };
        if (std::none_of(divisions_.begin(), divisions_.end(), same)) divisions_.push_back(atom);
      }
    }
  }
}

/// The facts about symbols that are concerned, and those that these facts bring.
void DimProof::gather_facts() {
  const auto concerned = [this](const std::string& name) { return variables_.contains(name); };
  std::vector<bool> taken(facts_.known_.size());
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < taken.size(); ++i) {
      const DimFacts::Known& fact = facts_.known_[i];
      if (taken[i] || std::none_of(fact.symbols.begin(), fact.symbols.end(), concerned)) continue;
      taken[i] = more = true;
      name_atoms(fact.nonpositive);
      known_.push_back(fact.nonpositive);
    }
  }
}

/// A function's values between those at the ends of its arguments.
Interval DimProof::call_bounds(const DimAtom& atom) {
  const ExtentFunction& function = extent_functions()[find_extent_function(atom.name).value()];
  std::vector<int64_t> lowest, highest;
  bool has_lowest = true, has_highest = true;
  if (function.follows.find('?') != std::string_view::npos) return {};
  for (size_t i = 0; i < atom.args.size(); ++i) {
    const Interval range = bounds(atom.args[i]);
    if (!range.low || *range.low < 0) return {};
    const bool rises = function.follows[i] != '-';
    const std::optional<int64_t>& least = rises ? range.low : range.high;
    const std::optional<int64_t>& most = rises ? range.high : range.low;
    has_lowest = has_lowest && least;
    has_highest = has_highest && most;
    lowest.push_back(least.value_or(0));
    highest.push_back(most.value_or(0));
  }
  // Of arguments that are not negative no function makes a negative value.
  Interval result{0, std::nullopt};
  if (has_lowest) result.low = function.evaluate(lowest.data());
  if (has_highest) result.high = function.evaluate(highest.data());
  return result;
}

void DimProof::bound_calls() {
  // A call within another one's arguments has a shorter text.
  std::vector<std::pair<std::string, Atom>> calls(calls_.begin(), calls_.end());
  calls_.clear();
  std::stable_sort(calls.begin(), calls.end(),
                   [](const auto& a, const auto& b) { return a.first.size() < b.first.size(); });
  for (const auto& [name, atom] : calls) {
    const Interval range = call_bounds(*atom);
    const Expr value(variables_.at(name));
    if (range.low) context_.assume(value >= Expr(*range.low));
    if (range.high) context_.assume(value <= Expr(*range.high));
  }
}

bool DimProof::nonpositive(const Dim& dim) {
  // A search through a long formula would take its time: the ends of its terms must do, as of a sum of
  // counts.
  if (dim.size() > kMaxProofSize) return bounds(dim).high.value_or(1) <= 0;
  // What all terms have in common, and is not negative, tells nothing of the sign.
  std::vector<Atom> factors = common_factors(dim);
  std::erase_if(factors, [this](const Atom& atom) { return bounds(of_atom(atom)).low.value_or(-1) < 0; });
  if (context_.proves(expr(without_factors(dim, factors)) <= Expr(0))) return true;
  // Unless it is none.
  return !factors.empty() && context_.proves(expr(dim) <= Expr(0));
}

Expr DimProof::expr(const Dim& dim) {
  name_atoms(dim);
  return to_expr(dim, variables_);
}

/// y * (x // y) <= x < y * (x // y) + y for y > 0: the prover itself knows it of constant divisors.
void DimProof::bound_division(const DimAtom& atom) {
  const Dim &x = atom.args[0], &y = atom.args[1];
  const Interval divisor = bounds(y);
  if (!divisor.low || *divisor.low < 1) return;
  const Dim product = y * of_atom(make_atom(atom.kind, {}, atom.args));
  assume(product - x);
  assume(x - product - y + 1);
}

/// A fact times something that is not negative is a fact: of use where the dims have such a product.
void DimProof::add_products(const std::vector<Dim>& dims) {
  constexpr size_t kMaxProducts = 32;
  std::set<Dim> added;
  for (const Dim& dim : dims) {
    for (const DimTerm& term : dim.terms()) {
      if (term.factors.size() < 2) continue;
      for (const Dim& fact : known_) {
        for (const DimTerm& part : fact.terms()) {
          const auto others = without_factors(term.factors, part.factors);
          if (!others || others->empty() || added.size() == kMaxProducts) continue;
          const Dim factor = of_term({1, *others});
          if (bounds(factor).low.value_or(-1) < 0 || !added.insert(fact * factor).second) continue;
          assume(fact * factor);
        }
      }
    }
  }
}

}  // namespace tensormill::te
