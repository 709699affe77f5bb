/// What is known of the symbols of dims, what follows from it, and equations solved for one symbol. Every
/// answer holds for all values of the symbols that fulfil the facts and for which the dims have a value; a
/// symbol that has no upper bound is taken to be at most 2^47, as no larger extent can be allocated.
/// Thread-safety: an object belongs to one thread; its const members may be called from several.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/te/dim.h"
#include "compiler/te/simplify.h"

namespace tensormill::te {

struct Unified;

/// Whether a statement always holds, never holds, or neither is known.
enum class Truth : uint8_t { kUnknown, kProven, kRefuted };

class DimFacts {
public:
  /// A symbol within [low, high] (a missing end: no bound), a multiple of `divisor` > 0. The bounds may
  /// mention symbols that were declared before. A symbol that is not declared is any integer.
  void declare(const std::string& symbol, std::optional<Dim> low, std::optional<Dim> high = std::nullopt,
               int64_t divisor = 1);
  /// Further facts. Where an equation can be solved for a symbol, that symbol is replaced from now on.
  void assume_equal(const Dim& a, const Dim& b);
  void assume_le(const Dim& a, const Dim& b);
  void assume_divisible(const Dim& a, const Dim& by);

  Truth prove_equal(const Dim& a, const Dim& b) const;
  Truth prove_le(const Dim& a, const Dim& b) const;
  /// Refuted where a % by is never 0. `by` is taken to be other than 0.
  Truth prove_divisible(const Dim& a, const Dim& by) const;
  /// Numbers that a never leaves; a missing end is not known.
  Interval bounds(const Dim& a) const;
  /// An equal dim with those symbols replaced that equations were solved for, and nothing else.
  Dim solved(const Dim& a) const { return restored(normalized(a)); }
  /// An equal dim with solved symbols replaced, minima, maxima and quotients decided where facts allow.
  Dim simplify(const Dim& a) const;

  struct Symbol {
    std::optional<Dim> low, high;
    int64_t divisor = 1;
    size_t order = 0;  ///< of declaration
  };
  /// As declared; null for a symbol that is not.
  const Symbol* find(const std::string& symbol) const;

private:
  friend class DimProof;
  friend Unified unify(const Dim& a, const Dim& b, const DimFacts& facts);
  /// part * by == whole: `part` is a symbol of our own, which took the place of `symbol`.
  struct Multiple {
    Dim whole;
    int64_t by;
    std::string symbol;
  };
  /// A fact dim <= 0 in normalized form, with its symbols, by which queries find what concerns them.
  struct Known {
    Dim nonpositive;
    std::vector<std::string> symbols;
  };
  void add_known(const Dim& nonpositive);
  Dim normalized(const Dim& dim) const;
  void express(std::string& symbol, Dim& value) const;
  Dim restored(const Dim& dim) const;
  void replace(const std::string& symbol, const Dim& value);

  std::map<std::string, Symbol> symbols_;
  std::map<std::string, Dim> solved_;      ///< by symbol; values mention no key
  std::map<std::string, Multiple> parts_;  ///< by the name of the part
  std::vector<Known> known_;
  std::vector<std::pair<Dim, Dim>> divisible_;  ///< by the second
};

/// What makes a == b hold.
struct Unified {
  enum class Kind : uint8_t {
    kEqual,     ///< it always holds
    kSolved,    ///< it holds where `symbol` is replaced by `value`
    kGuard,     ///< there is no solution: a == b has to be checked when shapes bind
    kConflict,  ///< it never holds
  };
  Kind kind;
  std::string symbol;  ///< kSolved
  Dim value;           ///< kSolved; does not mention the symbol
  /// kSolved: what the symbol's declaration says of the value and is not proven: first <= second.
  std::vector<std::pair<Dim, Dim>> conditions;
};
/// Solves a == b for one symbol that occurs once, linearly, with the coefficient ±1 or one that divides the
/// rest by the facts. Of several one that is the sum of the others, then the one that was
/// declared last, and one that was not declared before all.
Unified unify(const Dim& a, const Dim& b, const DimFacts& facts);

}  // namespace tensormill::te
