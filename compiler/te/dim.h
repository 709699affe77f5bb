/// Dims: extents as int64 expressions over symbols, in a normal form. A dim is a constant plus a sum of
/// monomials over atoms: symbols, quotients, minima, maxima and calls of the functions of
/// runtime/base/extents/extent_functions.def. Sums and products are multiplied out and ordered, so that N*S
/// and S*N, or (N+1)*(N-1) and N*N-1, are one dim: == is equality of normal forms, which implies equal values
/// wherever both are defined. Dims that are equal for reasons that only facts give, or that no rule here
/// knows, may differ: ask DimFacts.
///
/// Meaning: integers without bound. A value that does not fit, or one divided by 0, is none (evaluate). A
/// normal form may be defined where what it was made of is not: N*S//S is N, also for S = 0, and N % 0 is N.
/// Errors: operations throw Error(kTooLarge) when a number of the formula passes int64 or the formula
/// kMaxSize parts. Thread-safety: immutable.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/te/expr.h"
#include "runtime/base/extents/extent.h"

namespace tensormill::te {

class Dim;
struct DimAtom;
using Atom = std::shared_ptr<const DimAtom>;

/// coefficient * the product of the factors: at least one, in order, a power as repeated factors.
struct DimTerm {
  int64_t coefficient;
  std::vector<Atom> factors;
};

class Dim {
public:
  static constexpr size_t kMaxSize = 16384;
  static constexpr size_t kMaxDepth = 32;

  Dim(int64_t value = 0) : constant_(value) {}          // NOLINT: a number is a dim
  Dim(int value) : Dim(static_cast<int64_t>(value)) {}  // NOLINT
  static Dim symbol(std::string name);

  bool is_constant() const { return sum_ == nullptr; }
  /// The constant summand: the value of a constant dim.
  int64_t constant() const { return constant_; }
  /// The other summands in order: by degree, highest first, then by their atoms.
  const std::vector<DimTerm>& terms() const;
  /// The one atom that the dim consists of; null otherwise.
  Atom as_atom() const;
  /// The name when the dim is one symbol; null otherwise.
  const std::string* as_symbol() const;

  /// Names of all symbols, also those inside atoms, sorted.
  std::vector<std::string> symbols() const;
  bool mentions(std::string_view symbol) const;
  /// Symbols that are keys replaced by dims, all at once.
  Dim substitute(const std::map<std::string, Dim>& values) const;
  /// Every atom, innermost first, replaced by what `replace` makes of it; nothing keeps the atom.
  Dim rewrite(const std::function<std::optional<Dim>(const Atom&)>& replace) const;
  /// The value; nothing where a symbol has none, a result on the way does not fit, or something is divided
  /// by 0.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t>& values) const;

  /// The formula that the executor evaluates. Its symbols are sorted by name.
  Extent extent() const;
  /// As in extent.h: `(H + 1)//2`, `N*S`, `min(N, 8)`, `H % 4`.
  std::string to_string() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a);
  Dim& operator+=(const Dim& other) { return *this = *this + other; }
  Dim& operator-=(const Dim& other) { return *this = *this - other; }
  Dim& operator*=(const Dim& other) { return *this = *this * other; }
  /// A total order of normal forms, for maps and for sorting; it says nothing of values.
  friend std::strong_ordering operator<=>(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  size_t hash() const;
  /// How many numbers and names the formula has, and how deep atoms are nested.
  size_t size() const;
  size_t depth() const;

private:
  struct Sum;
  friend class DimBuilder;
  int64_t constant_ = 0;
  std::shared_ptr<const Sum> sum_;  ///< null: no terms
};

/// The text of a call, which is made when it is asked for the first time.
struct CallText {
  std::once_flag once;
  std::string text;
};

struct DimAtom {
  enum class Kind : uint8_t { kSymbol, kFloorDiv, kMin, kMax, kCall };
  Kind kind;
  std::string name;       ///< kSymbol, kCall
  std::vector<Dim> args;  ///< kFloorDiv: two; kMin, kMax: at least two; kCall
  size_t hash = 0;
  std::shared_ptr<CallText> text;  ///< kCall
};
/// A call as Dim::to_string has it. Thread-safe.
const std::string& call_text(const DimAtom& call);
std::strong_ordering compare(const Atom& a, const Atom& b);
/// A dim of one atom, whose args are taken as they are.
Dim of_atom(Atom atom);
/// coefficient * product of factors, and a sum of such.
Dim of_term(const DimTerm& term);

/// Rounded down; what b divides exactly, structurally, is divided: 4*N//2 is 2*N, N*S//S is N.
Dim floordiv(const Dim& a, const Dim& b);
/// a - b * floordiv(a, b): remainders have no atoms of their own, so that they cancel against quotients.
Dim floormod(const Dim& a, const Dim& b);
/// (a + b - 1) // b, for b > 0.
Dim ceildiv(const Dim& a, const Dim& b);
/// Flattened, ordered, with at most one constant; what another operand exceeds by a constant is left out.
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
/// A function of extent_functions.def; a constant where the args are. A factor is given by its bits
/// (factor_bits). Throws Error(kInvalidArgument) for a name, a number of args or a factor that is none.
Dim call(std::string_view function, std::vector<Dim> args);
/// Throws Error(kInvalidArgument or kTooLarge) as Extent::parse does.
Dim parse_dim(std::string_view text);
Dim to_dim(const Extent& extent);

/// As an expression of the loop IR. `variables` has one for each symbol, and one by its text for each call
/// (`scaled(H, 2.5f)`), which a kernel gets as an argument. TM_CHECK for one that is missing.
Expr to_expr(const Dim& dim, const std::map<std::string, Var>& variables);
/// The reverse: each variable as the dim that `known` has for it, else as the symbol of its name. Nothing for
/// an expression that is not built of + - * floordiv floormod min max.
std::optional<Dim> to_dim(const Expr& expr, const std::map<Var, Dim>& known = {});

}  // namespace tensormill::te

template <>
struct std::hash<tensormill::te::Dim> {
  size_t operator()(const tensormill::te::Dim& dim) const { return dim.hash(); }
};
