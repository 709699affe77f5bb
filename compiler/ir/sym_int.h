/// Integers that may depend on a model's free dims: extents of a graph's types, and elements of shape
/// arithmetic. A SymInt is an expression over the symbols of a SymbolTable; its hint is the value that it has
/// at the extents at which the model is looked at. A comparison that the table's facts decide is answered by
/// proof; any other is answered as the hint has it, and noted in the table as a guard: what was built holds
/// where the guards do, and they are checked when shapes bind. What an operator demands of its operands
/// (demand) is a guard as well, and moves hints that do not fulfil it. Converting a SymInt to int64_t is the
/// guard that it is equal to its hint. (PyTorch's SymInt and ShapeEnv, on the algebra of te/dim.h.)
/// Thread-safety: those of one table belong to one thread; constants are values.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/checked_list.h"
#include "compiler/te/dim_facts.h"
#include "runtime/base/shape.h"

namespace tensormill::ir {

class SymbolTable;
class SymShape;

class SymInt {
public:
  SymInt() = default;
  template <std::integral T>
  SymInt(T value) : value_(static_cast<int64_t>(value)) {}  // NOLINT: a number is a constant
  /// An expression of the table's symbols; a constant where it has none.
  SymInt(const te::Dim& expr, const std::shared_ptr<SymbolTable>& table);

  bool is_constant() const { return symbolic_ == nullptr; }
  /// The value at the extents at which the model is looked at. It decides nothing: for estimates, for what is
  /// checked again when shapes bind, and for texts.
  int64_t hint() const { return is_constant() ? value_ : checked_hint(); }
  /// The same; nothing where it would be no int64.
  std::optional<int64_t> known_hint() const { return is_constant() ? value_ : symbolic_hint(); }
  te::Dim expr() const;
  /// Null for constants.
  SymbolTable* table() const;
  /// The value, which is the same in all runs from now on: the guard `*this == hint()`.
  operator int64_t() const { return is_constant() ? value_ : specialized(); }  // NOLINT
  /// As an expression over the table's variables (SymbolTable::variables).
  operator te::Expr() const;  // NOLINT

  /// Of 0 or more: rounded down, as of int64_t. That it is 0 or more is a guard where it is not proven.
  friend SymInt operator/(const SymInt& a, const SymInt& b);
  friend SymInt operator%(const SymInt& a, const SymInt& b);
  friend SymInt operator+(const SymInt& a, const SymInt& b);
  friend SymInt operator-(const SymInt& a, const SymInt& b);
  friend SymInt operator*(const SymInt& a, const SymInt& b);
  SymInt operator-() const { return SymInt(0) - *this; }

  template <std::convertible_to<SymInt> T>
  SymInt& operator+=(const T& b) {
    return *this = *this + SymInt(b);
  }
  template <std::convertible_to<SymInt> T>
  SymInt& operator-=(const T& b) {
    return *this = *this - SymInt(b);
  }
  template <std::convertible_to<SymInt> T>
  SymInt& operator*=(const T& b) {
    return *this = *this * SymInt(b);
  }
  template <std::convertible_to<SymInt> T>
  SymInt& operator/=(const T& b) {
    return *this = *this / SymInt(b);
  }
  SymInt& operator++() { return *this += 1; }
  SymInt& operator--() { return *this -= 1; }

private:
  struct Symbolic {
    te::Dim expr;
    std::shared_ptr<SymbolTable> table;
    mutable std::optional<int64_t> hint = {};
    mutable size_t hints_version = 0;  ///< of the table's hints when `hint` was worked out
  };
  int64_t specialized() const;
  int64_t checked_hint() const;
  std::optional<int64_t> symbolic_hint() const;

  int64_t value_ = 0;
  std::shared_ptr<const Symbolic> symbolic_;
};

/// Rounded down, and what is left then (of the divisor's sign).
SymInt floordiv(const SymInt& a, const SymInt& b);
SymInt floormod(const SymInt& a, const SymInt& b);
/// (a + b - 1) / b, of a >= 0 and b > 0.
SymInt ceildiv(const SymInt& a, const SymInt& b);
SymInt min(const SymInt& a, const SymInt& b);
SymInt max(const SymInt& a, const SymInt& b);
/// A function of runtime/base/extents/extent_functions.def.
SymInt call(std::string_view function, const std::vector<SymInt>& args);
std::string to_string(const SymInt& value);

enum class Relation : uint8_t { kEqual, kLess, kLessEqual };
/// Whether the relation holds: proven, or noted as a guard as the hints have it.
bool decide(Relation relation, const SymInt& a, const SymInt& b);
/// Whether the relation can hold: then it is demanded of all runs (SymbolTable::demand).
bool demand(Relation relation, const SymInt& a, const SymInt& b);
/// That a is a multiple of b.
bool demand_divisible(const SymInt& a, const SymInt& b);
bool demand_equal(const SymShape& a, const SymShape& b);
/// Whether it is known of all runs: of those with extents of 1 or more by proof, of the others by a guard.
bool is_proven(Relation relation, const SymInt& a, const SymInt& b);
/// Whether both are one expression: no guard, and no proof but the normal form's.
bool same(const SymInt& a, const SymInt& b);

// One function an operator for two SymInts, and one for a number on either side, which the conversions to
// int64_t would make ambiguous.
#define TM_SYM_OPERATOR(result, op, body)                                      \
  inline result operator op(const SymInt& a, const SymInt& b) { return body; } \
  template <std::integral T>                                                   \
  result operator op(const SymInt& a, T b) {                                   \
    return a op SymInt(b);                                                     \
  }                                                                            \
  template <std::integral T>                                                   \
  result operator op(T a, const SymInt& b) {                                   \
    return SymInt(a) op b;                                                     \
  }
TM_SYM_OPERATOR(bool, ==, decide(Relation::kEqual, a, b))
TM_SYM_OPERATOR(bool, !=, !decide(Relation::kEqual, a, b))
TM_SYM_OPERATOR(bool, <, decide(Relation::kLess, a, b))
TM_SYM_OPERATOR(bool, <=, decide(Relation::kLessEqual, a, b))
TM_SYM_OPERATOR(bool, >, decide(Relation::kLess, b, a))
TM_SYM_OPERATOR(bool, >=, decide(Relation::kLessEqual, b, a))
#undef TM_SYM_OPERATOR
#define TM_SYM_OPERATOR(op)                  \
  template <std::integral T>                 \
  SymInt operator op(const SymInt& a, T b) { \
    return a op SymInt(b);                   \
  }                                          \
  template <std::integral T>                 \
  SymInt operator op(T a, const SymInt& b) { \
    return SymInt(a) op b;                   \
  }
TM_SYM_OPERATOR(+)
TM_SYM_OPERATOR(-)
TM_SYM_OPERATOR(*)
TM_SYM_OPERATOR(/)
TM_SYM_OPERATOR(%)
#undef TM_SYM_OPERATOR

/// Extents, outermost first: an axis that the shape does not have is no extent, OutOfRange. Converts from a
/// Shape, and to one by the guards of its elements.
class SymShape : public CheckedList<SymInt, ListKind::kShape> {
public:
  using CheckedList::CheckedList;
  SymShape() = default;
  SymShape(const Shape& shape);  // NOLINT
  operator Ints() const;         // NOLINT

  bool is_constant() const;
  /// The hints of all: see SymInt::hint.
  Shape hints() const;
  /// All as expressions over the table's variables.
  std::vector<te::Expr> exprs() const;
};
/// Whether all extents are equal, by proofs and guards.
bool operator==(const SymShape& a, const SymShape& b);
bool same(const SymShape& a, const SymShape& b);
/// "[N,3,(H + 1) // 2,W]"
std::string to_string(const SymShape& shape);
/// Product of the extents. Throws as of a Shape where the hints are negative or too many.
SymInt num_elements(const SymShape& shape);
SymShape row_major_strides(const SymShape& shape);
/// Numpy's broadcast. Guards: two extents that may differ are equal; one beside a number is it, or is 1.
SymShape broadcast_shapes(const SymShape& a, const SymShape& b);

/// What must hold where a graph is used that was built with a table.
struct Guard {
  Relation relation = Relation::kEqual;
  bool holds = true;  ///< false: the relation is false
  te::Dim left, right;
  std::string origin;     ///< the model's node for which it was asked
  bool demanded = false;  ///< an operator takes nothing else; otherwise other kernels would be made there

  bool operator==(const Guard&) const = default;
};
std::string to_string(const Guard& guard);
/// Whether it holds where the symbols have those values.
bool holds_at(const Guard& guard, const std::map<std::string, int64_t>& values);
/// The reverse: of a guard without origin; nothing for another text.
std::optional<Guard> parse_guard(std::string_view text);

/// A symbol that a run works out, by a node bind_extents (compiler/ops/extents.cc): an extent that data
/// decides, or a number of which extents are made.
struct RunSymbol {
  std::string name;
  std::optional<int64_t> low;   ///< the least that what is built takes; none: any integer
  std::optional<te::Dim> high;  ///< an upper bound of all runs, over symbols before it

  bool operator==(const RunSymbol&) const = default;
};

/// The symbols of a graph, their hints, and what is known and what was assumed of them.
class SymbolTable : public std::enable_shared_from_this<SymbolTable> {
public:
  /// A new symbol of `low` or more. The name is free.
  SymInt add(const std::string& name, int64_t hint, int64_t low = 1);
  /// One that a run binds, of that hint. What guards say of it holds from where it is bound on: it is no fact
  /// about the symbols that are known before.
  SymInt add_run_time_symbol(const RunSymbol& symbol, int64_t hint);
  /// In the order in which they were added.
  const std::vector<RunSymbol>& run_time_symbols() const { return of_run_; }
  const RunSymbol* find_run_time_symbol(const std::string& name) const;  ///< null where there is none
  /// Whether the dim is known only in a run, not yet when shapes bind.
  bool is_run_time(const te::Dim& dim) const;
  bool is_run_time(const Guard& guard) const { return is_run_time(guard.left) || is_run_time(guard.right); }
  /// All symbols of another table, without its guards.
  void add_symbols_of(const SymbolTable& other);
  const std::map<std::string, int64_t>& hints() const { return hints_; }
  /// Grows when hints move.
  size_t hints_version() const { return hints_version_; }
  /// Whether a guard no longer holds at the hints, which have moved since: what was built before may be meant
  /// for other extents.
  bool has_strayed() const;
  const te::DimFacts& facts() const { return facts_; }
  /// What of them holds where extents are 0 as well, as far as the guards allow that.
  const te::DimFacts& facts_with_zeros() const { return facts_with_zeros_; }
  /// The dim as an expression over variables that stand for the symbols, and for each call of a function.
  te::Expr expr_of(const te::Dim& dim);
  /// Those variables, by the text of what they stand for: "H", "scaled(H, 2.5f)".
  const std::map<std::string, te::Var>& variables() const { return variables_; }
  /// In the order in which they were met; none follows from those before it. Some follow from extents being 1
  /// or more: what was built does not hold of all extents of 0.
  const std::vector<Guard>& guards() const { return guards_; }

  /// Nothing where neither follows. What follows of extents of 1 or more alone is a guard from then on, which
  /// `demanded` is of.
  std::optional<bool> proves(Relation relation, const SymInt& a, const SymInt& b, bool demanded = false);
  /// The same of all extents, 0 among them, without a guard.
  std::optional<bool> proves_with_zeros(Relation relation, const SymInt& a, const SymInt& b);
  /// What follows of extents of 1 or more.
  te::Truth truth(Relation relation, const SymInt& a, const SymInt& b);
  bool decide(Relation relation, const SymInt& a, const SymInt& b);
  /// The guard that the value is the hint.
  void specialize(const SymInt& value, int64_t hint);
  /// Whether the relation, which an operator demands, can hold; then it is noted as a guard, and the hints
  /// are moved to where it and the guards before it hold.
  /// `for_all`: there are no other extents that the operator takes.
  bool demand(Relation relation, const SymInt& a, const SymInt& b, bool for_all = true);
  /// One that another table had, of the same symbols.
  void add_guard(const Guard& guard);
  /// Takes back the guards behind the first `count`: what they are of was built and is dropped. Symbols and
  /// hints stay as they are.
  void drop_guards_behind(size_t count);

  /// While it exists, extents that are not known to be equal are taken for other ones, without a guard: for
  /// who makes of equal ones something better, and of others what is right of any.
  class ProofsOnly {
  public:
    explicit ProofsOnly(SymbolTable* table);
    ~ProofsOnly();
    ProofsOnly(const ProofsOnly&) = delete;
    ProofsOnly& operator=(const ProofsOnly&) = delete;

  private:
    SymbolTable* table_;
    bool before_ = false;
  };

  /// Names the node that guards are for, as long as it exists.
  class Origin {
  public:
    Origin(SymbolTable* table, std::string name);
    ~Origin();
    Origin(const Origin&) = delete;
    Origin& operator=(const Origin&) = delete;

  private:
    SymbolTable* table_;
    std::string before_;
  };

private:
  /// With what equations say of the symbols that they were solved for.
  std::map<std::string, int64_t> settled(std::map<std::string, int64_t> hints) const;
  bool move_hints(Relation relation, const te::Dim& a, const te::Dim& b);
  bool holds_at(const std::map<std::string, int64_t>& hints, Relation relation, const te::Dim& a,
                const te::Dim& b) const;
  bool guards_hold_at(const std::map<std::string, int64_t>& hints) const;

  /// Whether the guard, where it is checked, tells something of symbols that were known before.
  bool is_fact(const Guard& guard) const;

  /// What is known of a symbol by itself.
  struct Declared {
    std::string name;
    std::optional<te::Dim> low, low_with_zeros, high;
  };
  void declare(Declared symbol);

  std::map<std::string, int64_t> hints_;
  size_t hints_version_ = 1;
  std::vector<Declared> declared_;
  te::DimFacts facts_, facts_with_zeros_;
  /// Whether a difference is 0, or 0 or less, as far as it was asked for: as long as no fact is added.
  struct Answers {
    std::unordered_map<te::Dim, te::Truth> equal, less_equal;
  };
  Answers answers_, answers_with_zeros_;
  std::vector<Guard> guards_;
  std::map<std::string, te::Var> variables_;
  std::string origin_;
  bool proofs_only_ = false;
  std::vector<RunSymbol> of_run_;
};

}  // namespace tensormill::ir
