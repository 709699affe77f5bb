#include "compiler/te/dim.h"

#include <algorithm>
#include <limits>
#include <set>

#include "compiler/te/dim_builder.h"
#include "runtime/base/error.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill::te {
namespace {

size_t mix(size_t seed, size_t value) { return (seed ^ value) * 0x9e3779b97f4a7c15ULL + (seed >> 29); }

[[noreturn]] void too_large(const std::string& what) {
  throw Error(ErrorCode::kTooLarge, "a formula of an extent " + what);
}

void collect_symbols(const Dim& dim, std::set<std::string>& names) {
  for (const DimTerm& term : dim.terms()) {
    for (const Atom& atom : term.factors) {
      if (atom->kind == DimAtom::Kind::kSymbol) names.insert(atom->name);
      for (const Dim& arg : atom->args) collect_symbols(arg, names);
    }
  }
}

}  // namespace

int64_t checked_add(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) too_large("has a number beyond 64 bits");
  return result;
}

int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) too_large("has a number beyond 64 bits");
  return result;
}

std::strong_ordering compare(const Atom& a, const Atom& b) {
  if (a == b) return std::strong_ordering::equal;
  if (const auto order = a->kind <=> b->kind; order != 0) return order;
  if (const int order = a->name.compare(b->name); order != 0) return order <=> 0;
  return std::lexicographical_compare_three_way(a->args.begin(), a->args.end(), b->args.begin(),
                                                b->args.end());
}

std::strong_ordering compare_factors(const std::vector<Atom>& a, const std::vector<Atom>& b) {
  if (a.size() != b.size()) return b.size() <=> a.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (const auto order = compare(a[i], b[i]); order != 0) return order;
  }
  return std::strong_ordering::equal;
}

std::optional<std::vector<Atom>> without_factors(const std::vector<Atom>& a, const std::vector<Atom>& b) {
  std::vector<Atom> rest;
  size_t next = 0;
  for (const Atom& atom : a) {
    if (next < b.size() && compare(atom, b[next]) == 0) {
      ++next;
    } else {
      rest.push_back(atom);
    }
  }
  if (next < b.size()) return std::nullopt;
  return rest;
}

std::strong_ordering operator<=>(const Dim& a, const Dim& b) {
  if (a.sum_ != b.sum_) {
    const std::vector<DimTerm>&x = a.terms(), &y = b.terms();
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (const auto order = compare_factors(x[i].factors, y[i].factors); order != 0) return order;
      if (const auto order = x[i].coefficient <=> y[i].coefficient; order != 0) return order;
    }
    // The one with more terms comes first, a constant last.
    if (x.size() != y.size()) return y.size() <=> x.size();
  }
  return a.constant_ <=> b.constant_;
}

bool operator==(const Dim& a, const Dim& b) { return a.hash() == b.hash() && (a <=> b) == 0; }

Dim DimBuilder::sum(std::vector<DimTerm> terms, int64_t constant) {
  std::sort(terms.begin(), terms.end(),
            [](const DimTerm& a, const DimTerm& b) { return compare_factors(a.factors, b.factors) < 0; });
  std::vector<DimTerm> joined;
  for (DimTerm& term : terms) {
    if (!joined.empty() && compare_factors(joined.back().factors, term.factors) == 0) {
      joined.back().coefficient = checked_add(joined.back().coefficient, term.coefficient);
    } else {
      if (!joined.empty() && joined.back().coefficient == 0) joined.pop_back();
      joined.push_back(std::move(term));
    }
  }
  if (!joined.empty() && joined.back().coefficient == 0) joined.pop_back();
  Dim result(constant);
  if (joined.empty()) return result;
  auto node = std::make_shared<Dim::Sum>();
  node->hash = joined.size();
  for (const DimTerm& term : joined) {
    // Has no opposite: every coefficient can be negated.
    if (term.coefficient == std::numeric_limits<int64_t>::min()) too_large("has a number beyond 64 bits");
    node->hash = mix(node->hash, static_cast<size_t>(term.coefficient));
    node->size += 1 + term.factors.size();
    for (const Atom& atom : term.factors) {
      node->hash = mix(node->hash, atom->hash);
      for (const Dim& arg : atom->args) {
        node->size += arg.size();
        node->depth = std::max(node->depth, arg.depth() + 1);
      }
    }
  }
  if (node->size > Dim::kMaxSize) too_large("has more than " + std::to_string(Dim::kMaxSize) + " parts");
  if (node->depth > Dim::kMaxDepth)
    too_large("is nested deeper than " + std::to_string(Dim::kMaxDepth) + " levels");
  node->terms = std::move(joined);
  result.sum_ = std::move(node);
  return result;
}

Dim DimBuilder::without_constant(const Dim& dim) {
  Dim result = dim;
  result.constant_ = 0;
  return result;
}

Atom make_atom(DimAtom::Kind kind, std::string name, std::vector<Dim> args) {
  auto atom = std::make_shared<DimAtom>(DimAtom{kind, std::move(name), std::move(args), 0, nullptr});
  atom->hash = mix(static_cast<size_t>(kind) + 1, std::hash<std::string>()(atom->name));
  for (const Dim& arg : atom->args) atom->hash = mix(atom->hash, arg.hash());
  if (kind == DimAtom::Kind::kCall) atom->text = std::make_shared<CallText>();
  return atom;
}

Dim of_atom(Atom atom) { return DimBuilder::sum({{1, {std::move(atom)}}}, 0); }
Dim of_term(const DimTerm& term) { return DimBuilder::sum({term}, 0); }

Dim Dim::symbol(std::string name) {
  if (name.empty()) throw Error(ErrorCode::kInvalidArgument, "a symbol of an extent has no name");
  return of_atom(make_atom(DimAtom::Kind::kSymbol, std::move(name), {}));
}

const std::vector<DimTerm>& Dim::terms() const {
  static const std::vector<DimTerm> none;
  return sum_ ? sum_->terms : none;
}

Atom Dim::as_atom() const {
  if (!sum_ || constant_ != 0 || sum_->terms.size() != 1) return nullptr;
  const DimTerm& term = sum_->terms[0];
  return term.coefficient == 1 && term.factors.size() == 1 ? term.factors[0] : nullptr;
}

const std::string* Dim::as_symbol() const {
  const Atom atom = as_atom();
  return atom && atom->kind == DimAtom::Kind::kSymbol ? &atom->name : nullptr;
}

size_t Dim::hash() const { return mix(sum_ ? sum_->hash : 0, static_cast<size_t>(constant_)); }
size_t Dim::size() const { return (sum_ ? sum_->size : 0) + 1; }
size_t Dim::depth() const { return sum_ ? sum_->depth : 0; }

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  collect_symbols(*this, names);
  return {names.begin(), names.end()};
}

bool Dim::mentions(std::string_view symbol) const {
  const auto in_atom = [symbol](const Atom& atom) {
    if (atom->kind == DimAtom::Kind::kSymbol) return atom->name == symbol;
    return std::any_of(atom->args.begin(), atom->args.end(),
                       [symbol](const Dim& arg) { return arg.mentions(symbol); });
  };
  return std::any_of(terms().begin(), terms().end(), [&](const DimTerm& term) {
    return std::any_of(term.factors.begin(), term.factors.end(), in_atom);
  });
}

Dim operator+(const Dim& a, const Dim& b) {
  const int64_t constant = checked_add(a.constant_, b.constant_);
  if (!a.sum_ || !b.sum_) {
    Dim result = a.sum_ ? a : b;
    result.constant_ = constant;
    return result;
  }
  std::vector<DimTerm> terms = a.terms();
  terms.insert(terms.end(), b.terms().begin(), b.terms().end());
  return DimBuilder::sum(std::move(terms), constant);
}

Dim operator*(const Dim& a, const Dim& b) {
  std::vector<DimTerm> terms;
  // Before there are that many: their products alone could fill the memory.
  if (a.terms().size() * b.terms().size() > Dim::kMaxSize)
    too_large("has more than " + std::to_string(Dim::kMaxSize) + " parts");
  for (const DimTerm& x : a.terms()) {
    for (const DimTerm& y : b.terms()) {
      std::vector<Atom> factors;
      std::merge(x.factors.begin(), x.factors.end(), y.factors.begin(), y.factors.end(),
                 std::back_inserter(factors), [](const Atom& p, const Atom& q) { return compare(p, q) < 0; });
      terms.push_back({checked_multiply(x.coefficient, y.coefficient), std::move(factors)});
    }
  }
  const auto scale = [&terms](const Dim& dim, int64_t by) {
    if (by == 0) return;
    for (const DimTerm& term : dim.terms())
      terms.push_back({checked_multiply(term.coefficient, by), term.factors});
  };
  scale(a, b.constant());
  scale(b, a.constant());
  return DimBuilder::sum(std::move(terms), checked_multiply(a.constant(), b.constant()));
}

Dim operator-(const Dim& a) { return a * Dim(-1); }
Dim operator-(const Dim& a, const Dim& b) { return a + -b; }

Dim rebuilt(const DimAtom& atom, std::vector<Dim> args) {
  switch (atom.kind) {
    case DimAtom::Kind::kFloorDiv:
      return floordiv(args[0], args[1]);
    case DimAtom::Kind::kMin:
    case DimAtom::Kind::kMax:
      return extremum(atom.kind, args);
    default:
      return call(atom.name, std::move(args));
  }
}

Dim Dim::rewrite(const std::function<std::optional<Dim>(const Atom&)>& replace) const {
  Dim result(constant_);
  for (const DimTerm& term : terms()) {
    Dim product(term.coefficient);
    for (const Atom& atom : term.factors) {
      std::vector<Dim> args;
      for (const Dim& arg : atom->args) args.push_back(arg.rewrite(replace));
      const Dim inner = args == atom->args ? of_atom(atom) : rebuilt(*atom, std::move(args));
      const Atom whole = inner.as_atom();
      product = product * (whole ? replace(whole).value_or(inner) : inner);
    }
    result += product;
  }
  return result;
}

Dim Dim::substitute(const std::map<std::string, Dim>& values) const {
  if (is_constant()) return *this;
  return rewrite([&values](const Atom& atom) -> std::optional<Dim> {
    if (atom->kind != DimAtom::Kind::kSymbol) return std::nullopt;
    const auto found = values.find(atom->name);
    return found == values.end() ? std::nullopt : std::optional<Dim>(found->second);
  });
}

std::optional<int64_t> Dim::evaluate(const std::map<std::string, int64_t>& values) const {
  const Extent formula = extent();
  std::vector<int64_t> numbers;
  for (const std::string& name : formula.symbols()) {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    numbers.push_back(found->second);
  }
  return formula.evaluate(numbers);
}

Dim call(std::string_view function, std::vector<Dim> args) {
  const std::optional<size_t> index = find_extent_function(function);
  if (!index || extent_functions()[*index].arity != args.size()) {
    throw Error(ErrorCode::kInvalidArgument, "there is no function of extents " + std::string(function) +
                                                 " of " + std::to_string(args.size()) + " arguments");
  }
  const ExtentFunction& row = extent_functions()[*index];
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_constant()) numbers.push_back(args[i].constant());
    if (row.follows[i] == 'f' && !(args[i].is_constant() && factor_of_bits(args[i].constant()))) {
      throw Error(ErrorCode::kInvalidArgument,
                  "argument " + std::to_string(i + 1) + " of " + std::string(function) + " is no factor");
    }
  }
  if (numbers.size() == args.size()) {
    if (const std::optional<int64_t> value = row.evaluate(numbers.data())) return *value;
  }
  return of_atom(make_atom(DimAtom::Kind::kCall, std::string(function), std::move(args)));
}

}  // namespace tensormill::te
