/// How dims are put together. Not for other folders: use dim.h. Thread-safety: pure functions.
#pragma once

#include "compiler/te/dim.h"

namespace tensormill::te {

struct Dim::Sum {
  std::vector<DimTerm> terms;
  size_t size = 0, depth = 0, hash = 0;
};

class DimBuilder {
public:
  /// A dim of terms in any order, with equal ones not yet added up.
  static Dim sum(std::vector<DimTerm> terms, int64_t constant);
  /// The terms alone, the constant alone.
  static Dim without_constant(const Dim& dim);
};

int64_t checked_add(int64_t a, int64_t b);
int64_t checked_multiply(int64_t a, int64_t b);
Atom make_atom(DimAtom::Kind kind, std::string name, std::vector<Dim> args);
/// The order of monomials alone: by degree, highest first, then by their atoms.
std::strong_ordering compare_factors(const std::vector<Atom>& a, const std::vector<Atom>& b);
/// a without the factors of b; nothing where one is missing.
std::optional<std::vector<Atom>> without_factors(const std::vector<Atom>& a, const std::vector<Atom>& b);
/// The largest common divisor of the coefficients, and of the constant as well unless requested otherwise.
int64_t content(const Dim& dim, bool with_constant = true);
/// Every number of the sum divided by one that divides it.
Dim divided_exactly(const Dim& dim, int64_t by);
/// The q with a == b * q; nothing where polynomial division leaves a rest.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);
Dim extremum(DimAtom::Kind kind, const std::vector<Dim>& args);
/// The atom with other args, in normal form.
Dim rebuilt(const DimAtom& atom, std::vector<Dim> args);
/// The factors that all terms have; none where there is a constant besides them.
std::vector<Atom> common_factors(const Dim& dim);
/// Without factors that all terms have.
Dim without_factors(const Dim& dim, const std::vector<Atom>& factors);
/// Without the number that all summands are multiples of.
Dim without_content(const Dim& dim);
/// The coefficient of a symbol that occurs as the only factor of one term and nowhere else; 0 otherwise.
int64_t linear_coefficient(const Dim& dim, const std::string& symbol);

}  // namespace tensormill::te
