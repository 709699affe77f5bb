#include "compiler/te/dim_facts.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/te/dim_builder.h"
#include "compiler/te/dim_proof.h"
#include "compiler/te/scalar_ops.h"
#include "runtime/base/error.h"

namespace tensormill::te {
namespace {

using AtomKind = DimAtom::Kind;

/// No name of a model has a byte 0, so that our own symbols meet none of theirs.
std::string part_name(size_t number) { return std::string(1, '\0') + std::to_string(number); }
bool is_part(const std::string& name) { return name[0] == '\0'; }

/// The symbol for which zero == 0 is solved, by the order of Unified; empty when there is none.
std::string solvable_symbol(const Dim& zero, const DimFacts& facts) {
  std::string best;
  SolvingOrder latest;
  for (const std::string& name : zero.symbols()) {
    if (std::abs(linear_coefficient(zero, name)) != 1) continue;
    const SolvingOrder order = solving_order(zero, name, facts);
    if (!best.empty() && order <= latest) continue;
    best = name;
    latest = order;
  }
  return best;
}

/// What the symbol is where zero == 0 and its coefficient is ±1.
Dim solution(const Dim& zero, const std::string& symbol) {
  const int64_t coefficient = linear_coefficient(zero, symbol);
  const Dim rest = zero - Dim::symbol(symbol) * Dim(coefficient);
  return coefficient > 0 ? -rest : rest;
}

/// What is 0 by itself where zero == 0: the terms of a sum of which none is negative, the operands of such a
/// maximum, and the one operand of a minimum that is not more anyway.
std::vector<Dim> parts_of_none(const Dim& zero, const DimFacts& facts) {
  const bool is_rising = !zero.terms().empty() && zero.terms()[0].coefficient > 0;
  std::vector<Dim> parts;
  for (const DimTerm& term : zero.terms()) {
    parts.push_back(of_term({1, term.factors}));
    const bool fits = (term.coefficient > 0) == is_rising && facts.bounds(parts.back()).low.value_or(-1) >= 0;
    if (!fits || zero.constant() != 0) return {};
  }
  const Atom atom = parts.size() == 1 ? parts[0].as_atom() : nullptr;
  if (atom == nullptr || (atom->kind != AtomKind::kMin && atom->kind != AtomKind::kMax))
    return parts.size() > 1 ? parts : std::vector<Dim>();
  parts = atom->args;
  const auto least_of = [&](const Dim& arg) { return facts.bounds(arg).low.value_or(-1); };
  if (atom->kind == AtomKind::kMin) {
    std::erase_if(parts, [&](const Dim& arg) { return least_of(arg) >= 1; });
    return parts.size() == 1 ? parts : std::vector<Dim>();
  }
  return std::all_of(parts.begin(), parts.end(), [&](const Dim& arg) { return least_of(arg) >= 0; })
             ? parts
             : std::vector<Dim>();
}

/// Decides minima, maxima and quotients by what is known.
class DimSimplifier {
public:
  DimSimplifier(const DimFacts& facts, const Dim& dim) : facts_(facts), proof_(facts, {dim}) {}

  Dim run(const Dim& dim) {
    return without_remainders(dim.rewrite([this](const Atom& atom) -> std::optional<Dim> {
      switch (atom->kind) {
        case AtomKind::kMin:
        case AtomKind::kMax:
          return best_of(*atom);
        case AtomKind::kFloorDiv:
          return quotient(atom->args[0], atom->args[1]);
        default:
          return std::nullopt;
      }
    }));
  }

private:
  std::optional<Dim> best_of(const DimAtom& atom) {
    std::vector<Dim> kept = atom.args;
    for (size_t i = 0; i < kept.size();) {
      const auto beats = [&](const Dim& other) {
        if (other == kept[i]) return false;
        return proof_.nonpositive(atom.kind == AtomKind::kMin ? other - kept[i] : kept[i] - other);
      };
      if (std::any_of(kept.begin(), kept.end(), beats)) {
        kept.erase(kept.begin() + static_cast<ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    if (kept.size() == atom.args.size()) return std::nullopt;
    return extremum(atom.kind, kept);
  }

  std::optional<Dim> quotient(const Dim& x, const Dim& y) {
    if (!y.is_constant()) {
      const bool none = proof_.nonpositive(-x) && proof_.nonpositive(x - y + 1);
      return none ? std::optional<Dim>(0) : std::nullopt;
    }
    const int64_t divisor = y.constant();
    const Interval range = proof_.bounds(x);
    if (range.low && range.high) {
      const int64_t low = signed_floordiv(*range.low, divisor);
      if (low == signed_floordiv(*range.high, divisor)) return low;
    }
    // x = g*large + small with g | divisor and small within [0, g): the small part cannot carry.
    for (const DimTerm& candidate : x.terms()) {
      const int64_t g = std::gcd(candidate.coefficient, divisor);
      if (g <= 1) continue;
      Dim large = signed_floordiv(x.constant(), g);
      for (const DimTerm& term : x.terms()) {
        if (term.coefficient % g == 0) large += of_term({term.coefficient / g, term.factors});
      }
      const Interval small = proof_.bounds(x - large * Dim(g));
      if (small.low && small.high && *small.low >= 0 && *small.high < g) return floordiv(large, divisor / g);
    }
    return std::nullopt;
  }

  /// y * (x // y) is x where y divides it.
  Dim without_remainders(const Dim& dim) const {
    Dim result = dim;
    for (const DimTerm& term : dim.terms()) {
      for (size_t i = 0; i < term.factors.size(); ++i) {
        const DimAtom& atom = *term.factors[i];
        if (atom.kind != AtomKind::kFloorDiv) continue;
        DimTerm others = term;
        others.factors.erase(others.factors.begin() + static_cast<ptrdiff_t>(i));
        const Dim by = others.factors.empty() ? Dim(term.coefficient) : of_term(others);
        const std::optional<Dim> times = exact_quotient(by, atom.args[1]);
        if (!times || facts_.prove_divisible(atom.args[0], atom.args[1]) != Truth::kProven) continue;
        result = result - of_term(term) + *times * atom.args[0];
        break;
      }
    }
    return result;
  }

  const DimFacts& facts_;
  DimProof proof_;
};

}  // namespace

const DimFacts::Symbol* DimFacts::find(const std::string& symbol) const {
  const auto found = symbols_.find(symbol);
  return found == symbols_.end() ? nullptr : &found->second;
}

void DimFacts::declare(const std::string& symbol, std::optional<Dim> low, std::optional<Dim> high,
                       int64_t divisor) {
  TM_CHECK(divisor > 0, "the divisor " + std::to_string(divisor) + " of the symbol " + symbol);
  symbols_[symbol] = {low, high, divisor, symbols_.size()};
  // What bounds a symbol is a fact about that symbol and none about those that were there before: a model
  // with hundreds of counts that data decides bounds them all by the same few extents, and a proof about one
  // of these has no use for the others.
  const auto bound = [&](const Dim& nonpositive) {
    const size_t before = known_.size();
    add_known(nonpositive);
    if (known_.size() == before) return;
    std::vector<std::string>& symbols = known_.back().symbols;
    if (std::binary_search(symbols.begin(), symbols.end(), symbol)) symbols = {symbol};
  };
  if (low) bound(*low - Dim::symbol(symbol));
  if (high) bound(Dim::symbol(symbol) - *high);
  if (divisor > 1) assume_divisible(Dim::symbol(symbol), divisor);
}

void DimFacts::replace(const std::string& symbol, const Dim& value) {
  for (auto& [name, other] : solved_) other = other.substitute({{symbol, value}});
  for (Known& known : known_) {
    if (!known.nonpositive.mentions(symbol)) continue;
    known.nonpositive = known.nonpositive.substitute({{symbol, value}});
    if (std::binary_search(known.symbols.begin(), known.symbols.end(), symbol))
      known.symbols = known.nonpositive.symbols();
  }
  solved_.emplace(symbol, value);
}

void DimFacts::add_known(const Dim& nonpositive) {
  Dim dim = normalized(nonpositive);
  if (dim.is_constant()) return;
  std::vector<std::string> symbols = dim.symbols();
  known_.push_back({std::move(dim), std::move(symbols)});
}

Dim DimFacts::normalized(const Dim& dim) const { return solved_.empty() ? dim : dim.substitute(solved_); }

/// Multiples of parts as what they are multiples of, the other ones as quotients.
Dim DimFacts::restored(const Dim& dim) const {
  if (parts_.empty()) return dim;
  Dim result = dim.constant();
  for (const DimTerm& term : dim.terms()) {
    int64_t coefficient = term.coefficient;
    Dim product = 1;
    for (const Atom& atom : term.factors) {
      if (atom->kind == AtomKind::kSymbol && is_part(atom->name)) {
        const Multiple& part = parts_.at(atom->name);
        const int64_t common = std::gcd(coefficient, part.by);
        coefficient /= common;
        product *= floordiv(part.whole, part.by / common);
      } else if (atom->args.empty()) {
        product *= of_atom(atom);
      } else {
        std::vector<Dim> args;
        for (const Dim& arg : atom->args) args.push_back(restored(arg));
        product *= rebuilt(*atom, std::move(args));
      }
    }
    result += product * Dim(coefficient);
  }
  return result;
}

/// In symbols of the caller's: a part that is told is what it is a part of, solved for the symbol it
/// replaced.
void DimFacts::express(std::string& symbol, Dim& value) const {
  while (is_part(symbol)) {
    const Multiple& part = parts_.at(symbol);
    value = solution(part.whole - value * Dim(part.by), part.symbol);
    symbol = part.symbol;
  }
  value = restored(value);
}

void DimFacts::assume_equal(const Dim& a, const Dim& b) {
  const Dim zero = without_content(normalized(a - b));
  if (zero.is_constant()) return;
  if (const std::vector<Dim> parts = parts_of_none(zero, *this); !parts.empty()) {
    for (const Dim& part : parts) assume_equal(part, 0);
    return;
  }
  const std::string symbol = solvable_symbol(zero, *this);
  if (symbol.empty()) {
    add_known(zero);
    add_known(-zero);
  } else {
    replace(symbol, solution(zero, symbol));
  }
}

void DimFacts::assume_le(const Dim& a, const Dim& b) { add_known(a - b); }

void DimFacts::assume_divisible(const Dim& a, const Dim& by) {
  const Dim whole = normalized(a);
  const std::string symbol = by.is_constant() ? solvable_symbol(whole, *this) : std::string();
  if (symbol.empty()) {
    divisible_.emplace_back(a, by);
    return;
  }
  // whole == by * part is solved for its symbol.
  const std::string part = part_name(parts_.size());
  parts_.emplace(part, Multiple{restored(whole), by.constant(), symbol});
  replace(symbol, solution(whole - Dim::symbol(part) * by, symbol));
}

Truth DimFacts::prove_le(const Dim& a, const Dim& b) const {
  const Dim difference = normalized(a - b);
  if (difference.is_constant()) return difference.constant() <= 0 ? Truth::kProven : Truth::kRefuted;
  DimProof proof(*this, {difference});
  if (proof.nonpositive(difference)) return Truth::kProven;
  return proof.nonpositive(1 - difference) ? Truth::kRefuted : Truth::kUnknown;
}

Truth DimFacts::prove_equal(const Dim& a, const Dim& b) const {
  const Dim difference = normalized(a - b);
  if (difference.is_constant()) return difference.constant() == 0 ? Truth::kProven : Truth::kRefuted;
  // 2*N + 1 is never 0.
  if (difference.constant() % content(difference, false) != 0) return Truth::kRefuted;
  DimProof proof(*this, {difference});
  const bool below = proof.nonpositive(difference), above = proof.nonpositive(-difference);
  if (below && above) return Truth::kProven;
  if (proof.nonpositive(difference + 1) || proof.nonpositive(1 - difference)) return Truth::kRefuted;
  if (divisible_.empty()) return Truth::kUnknown;
  const Dim simpler = normalized(simplify(difference));
  return simpler.is_constant() ? (simpler.constant() == 0 ? Truth::kProven : Truth::kRefuted)
                               : Truth::kUnknown;
}

Truth DimFacts::prove_divisible(const Dim& a, const Dim& by) const {
  Dim rest = normalized(a);
  const Dim divisor = normalized(by);
  if (!divisor.is_constant()) {
    if (exact_quotient(rest, divisor)) return Truth::kProven;
  } else if (divisor == Dim(0)) {
    return Truth::kUnknown;
  }
  // What is a multiple of something that the divisor divides is taken away.
  for (const auto& [multiple, factor] : divisible_) {
    const Dim known = normalized(multiple);
    if (known.is_constant() || rest.is_constant()) continue;
    const auto whole = exact_quotient(of_term(rest.terms()[0]), of_term(known.terms()[0]));
    if (whole && exact_quotient(*whole * normalized(factor), divisor)) rest -= *whole * known;
  }
  if (!divisor.is_constant()) return exact_quotient(rest, divisor) ? Truth::kProven : Truth::kUnknown;
  if (content(rest, false) % divisor.constant() != 0) return Truth::kUnknown;
  return rest.constant() % divisor.constant() == 0 ? Truth::kProven : Truth::kRefuted;
}

Interval DimFacts::bounds(const Dim& a) const {
  const Dim dim = normalized(a);
  return DimProof(*this, {dim}).bounds(dim);
}

Dim DimFacts::simplify(const Dim& a) const {
  const Dim dim = normalized(a);
  if (dim.is_constant()) return dim;
  return restored(DimSimplifier(*this, dim).run(dim));
}

}  // namespace tensormill::te
