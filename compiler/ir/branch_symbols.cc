#include "compiler/ir/branch_symbols.h"

#include <algorithm>
#include <charconv>

namespace tensormill::ir {

namespace {

/// Names of symbols have no dot otherwise.
constexpr std::string_view kMark = ".b";

std::string name_inside(const std::string& symbol, int64_t branch) {
  return symbol + std::string(kMark) + std::to_string(branch);
}

template <typename Rename>
te::Dim renamed(const te::Dim& dim, const Rename& rename) {
  std::map<std::string, te::Dim> names;
  for (const std::string& symbol : dim.symbols()) names.emplace(symbol, te::Dim::symbol(rename(symbol)));
  return dim.substitute(names);
}

te::Dim renamed_inside(const te::Dim& dim, int64_t branch) {
  return renamed(dim, [&](const std::string& symbol) { return name_inside(symbol, branch); });
}

std::shared_ptr<SymbolTable> table_of(const SymInt& value) { return value.table()->shared_from_this(); }

}  // namespace

int64_t branch_of(std::string_view symbol) {
  const size_t at = symbol.rfind(kMark);
  if (at == std::string_view::npos) return kOutside;
  const std::string_view digits = symbol.substr(at + kMark.size());
  int64_t branch = kOutside;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), branch);
  return error == std::errc() && end == digits.data() + digits.size() ? branch : kOutside;
}

std::string around_branch(const std::string& symbol) {
  return branch_of(std::string_view(symbol)) == kOutside ? symbol : symbol.substr(0, symbol.rfind(kMark));
}

std::optional<int64_t> branch_of(const te::Dim& dim) {
  std::optional<int64_t> found;
  for (const std::string& symbol : dim.symbols()) {
    const int64_t branch = branch_of(std::string_view(symbol));
    if (found.value_or(branch) != branch) return std::nullopt;
    found = branch;
  }
  return found.value_or(kOutside);
}

std::optional<int64_t> branch_of(const Guard& guard) {
  const std::optional<int64_t> left = branch_of(guard.left), right = branch_of(guard.right);
  if (!left || !right || left == right) return left && right ? left : std::nullopt;
  // Numbers are of any.
  if (guard.left.is_constant()) return right;
  return guard.right.is_constant() ? left : std::nullopt;
}

std::set<int64_t> branches_of(const Guard& guard) {
  std::set<int64_t> branches;
  for (const te::Dim* side : {&guard.left, &guard.right}) {
    for (const std::string& symbol : side->symbols()) branches.insert(branch_of(std::string_view(symbol)));
  }
  branches.erase(kOutside);
  return branches;
}

int64_t add_branch(SymbolTable& table, int64_t around) {
  int64_t number = 0;
  const std::map<std::string, int64_t> hints = table.hints();
  for (const auto& [symbol, hint] : hints) number = std::max(number, branch_of(std::string_view(symbol)) + 1);
  for (const auto& [symbol, hint] : hints) {
    if (branch_of(std::string_view(symbol)) == around) table.add(name_inside(symbol, number), hint);
  }
  const std::vector<Guard> guards = table.guards();
  for (const Guard& guard : guards) {
    if (branch_of(guard) != around) continue;
    Guard own = guard;
    own.left = renamed_inside(guard.left, number);
    own.right = renamed_inside(guard.right, number);
    table.add_guard(own);
  }
  return number;
}

SymInt inside(const SymInt& value, int64_t branch) {
  return value.is_constant() ? value : SymInt(renamed_inside(value.expr(), branch), table_of(value));
}

SymInt outside(const SymInt& value, int64_t branch) {
  if (value.is_constant()) return value;
  const auto around = [&](const std::string& symbol) {
    return branch_of(std::string_view(symbol)) == branch ? around_branch(symbol) : symbol;
  };
  return {renamed(value.expr(), around), table_of(value)};
}

std::optional<SymInt> seen_from(const SymInt& value, int64_t branch) {
  if (value.is_constant()) return value;
  std::map<std::string, te::Dim> names;
  for (const auto& [symbol, hint] : value.table()->hints()) {
    if (branch_of(std::string_view(symbol)) != branch) continue;
    for (std::string around = symbol;; around = around_branch(around)) {
      names.emplace(around, te::Dim::symbol(symbol));
      if (branch_of(std::string_view(around)) == kOutside) break;
    }
  }
  const te::Dim dim = value.expr();
  for (const std::string& symbol : dim.symbols()) {
    if (names.count(symbol) == 0) return std::nullopt;
  }
  return SymInt(dim.substitute(names), table_of(value));
}

bool is_inherited(const SymbolTable& table, const Guard& guard) {
  Guard around = guard;
  around.left = renamed(guard.left, around_branch);
  around.right = renamed(guard.right, around_branch);
  const std::vector<Guard>& guards = table.guards();
  return std::find(guards.begin(), guards.end(), around) != guards.end();
}

void add_branch_values(const SymbolTable& table, std::map<std::string, int64_t>& values) {
  for (const auto& [symbol, hint] : table.hints()) {
    std::string around = symbol;
    while (values.count(around) == 0 && branch_of(std::string_view(around)) != kOutside)
      around = around_branch(around);
    if (values.count(around) != 0) values.emplace(symbol, values.at(around));
  }
}

}  // namespace tensormill::ir
