// Hints of symbols moved to where what an operator demands holds.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/sym_int.h"

namespace tensormill::ir {

namespace {

using Hints = std::map<std::string, int64_t>;
using Move = std::pair<std::string, int64_t>;

constexpr int64_t kLargest = int64_t{1} << 22, kNear = 4096;

/// Larger extents of a symbol, then those between.
template <typename Visit>
void for_each_value(int64_t hint, const Visit& visit) {
  for (int64_t value = 2 * hint; value <= kLargest && value > 0; value *= 2) visit(value);
  for (int64_t value = 1; value <= kNear; ++value) visit(value);
}

}  // namespace

std::map<std::string, int64_t> SymbolTable::settled(std::map<std::string, int64_t> hints) const {
  for (auto& [name, hint] : hints) {
    const te::Dim symbol = te::Dim::symbol(name);
    const te::Dim given = facts_.solved(symbol);
    const std::optional<int64_t> value = given == symbol ? std::nullopt : given.evaluate(hints);
    if (value) hint = *value;
  }
  return hints;
}

bool SymbolTable::move_hints(Relation relation, const te::Dim& a, const te::Dim& b) {
  // Of those symbols alone that no equation gives: settling leaves them and both sides as they are.
  const te::Dim left = facts_.simplify(a), right = facts_.simplify(b);
  std::optional<Hints> found;
  bool fits_all = false;
  const auto take = [&](Hints hints) {
    hints = settled(std::move(hints));
    if (!holds_at(hints, relation, left, right)) return;
    fits_all = guards_hold_at(hints);
    if (fits_all || !found) found = std::move(hints);
  };
  const auto try_move = [&](const Move& move) {
    if (fits_all) return;
    Hints hints = hints_;
    hints[move.first] = move.second;
    take(std::move(hints));
  };
  const te::Unified unified = te::unify(left, right, facts_);
  if (relation == Relation::kEqual && unified.kind == te::Unified::Kind::kSolved) {
    if (const std::optional<int64_t> value = unified.value.evaluate(hints_))
      try_move({unified.symbol, *value});
  }
  // What a symbol is to be as the hints are, then other extents of one symbol at a time.
  for (const auto& [side, other] : {std::pair(left, right), std::pair(right, left)}) {
    const std::optional<int64_t> value = other.evaluate(hints_);
    if (relation == Relation::kEqual && side.as_symbol() != nullptr && value.value_or(0) >= 1)
      try_move({*side.as_symbol(), *value});
  }
  Hints own;
  for (const te::Dim& side : {left, right}) {
    for (const std::string& symbol : side.symbols()) own[symbol] = hints_.at(symbol);
  }
  for (const te::Dim& side : {left, right}) {
    for (const std::string& symbol : side.symbols()) {
      const int64_t hint = own.at(symbol);
      for_each_value(hint, [&](int64_t value) {
        if (fits_all) return;
        own[symbol] = value;
        if (holds_at(own, relation, left, right)) try_move({symbol, value});
      });
      own[symbol] = hint;
    }
  }
  // Where one alone does not: all of them, which stay distinct.
  for (const int64_t least : {8, 16, 4, 32, 2, 64}) {
    if (found) break;
    Hints hints = hints_;
    int64_t value = least;
    for (const std::string& symbol : (left - right).symbols()) hints[symbol] = value++;
    hints = settled(std::move(hints));
    if (holds_at(hints, relation, left, right) && guards_hold_at(hints)) found = std::move(hints);
  }
  if (!found) return false;
  hints_ = *std::move(found);
  ++hints_version_;
  return true;
}

}  // namespace tensormill::ir
