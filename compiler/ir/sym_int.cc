#include "compiler/ir/sym_int.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/ir/branch_symbols.h"
#include "runtime/base/error.h"

namespace tensormill::ir {

namespace {

/// The table of one of them: those of one graph have one table.
std::shared_ptr<SymbolTable> table_of(const SymInt& a, const SymInt& b) {
  SymbolTable* table = a.is_constant() ? b.table() : a.table();
  TM_CHECK(a.is_constant() || b.is_constant() || a.table() == b.table(), "symbols of two tables");
  return table->shared_from_this();
}

bool holds_of(Relation relation, int64_t a, int64_t b) {
  if (relation == Relation::kEqual) return a == b;
  return relation == Relation::kLess ? a < b : a <= b;
}

/// What has to be 0, or 0 or less, for the relation to hold.
te::Dim difference_of(Relation relation, const SymInt& a, const SymInt& b) {
  const te::Dim difference = a.expr() - b.expr();
  return relation == Relation::kLess ? difference + te::Dim(1) : difference;
}

te::Truth truth_of(const te::DimFacts& facts, Relation relation, const te::Dim& difference) {
  const te::Dim zero(0);
  return relation == Relation::kEqual ? facts.prove_equal(difference, zero)
                                      : facts.prove_le(difference, zero);
}

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

}  // namespace

SymInt::SymInt(const te::Dim& expr, const std::shared_ptr<SymbolTable>& table) {
  if (expr.is_constant()) {
    value_ = expr.constant();
  } else {
    symbolic_ = std::make_shared<const Symbolic>(Symbolic{expr, table});
  }
}

te::Dim SymInt::expr() const { return is_constant() ? te::Dim(value_) : symbolic_->expr; }

SymbolTable* SymInt::table() const { return is_constant() ? nullptr : symbolic_->table.get(); }

std::optional<int64_t> SymInt::symbolic_hint() const {
  const SymbolTable& table = *symbolic_->table;
  if (symbolic_->hints_version != table.hints_version()) {
    symbolic_->hint = symbolic_->expr.evaluate(table.hints());
    symbolic_->hints_version = table.hints_version();
  }
  return symbolic_->hint;
}

int64_t SymInt::checked_hint() const {
  if (const std::optional<int64_t> value = symbolic_hint()) return *value;
  throw Error(ErrorCode::kInvalidModel, "extent " + symbolic_->expr.to_string() + " has no value");
}

int64_t SymInt::specialized() const {
  const int64_t value = hint();
  symbolic_->table->specialize(*this, value);
  return value;
}

SymInt::operator te::Expr() const {
  return is_constant() ? te::Expr(value_) : symbolic_->table->expr_of(symbolic_->expr);
}

SymInt operator+(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return a.hint() + b.hint();
  return {a.expr() + b.expr(), table_of(a, b)};
}

SymInt operator-(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return a.hint() - b.hint();
  return {a.expr() - b.expr(), table_of(a, b)};
}

SymInt operator*(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return a.hint() * b.hint();
  return {a.expr() * b.expr(), table_of(a, b)};
}

SymInt operator/(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return a.hint() / b.hint();
  TM_CHECK(a >= 0 && b > 0, "quotient of negative symbolic integers");
  return floordiv(a, b);
}

SymInt operator%(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return a.hint() % b.hint();
  TM_CHECK(a >= 0 && b > 0, "remainder of negative symbolic integers");
  return floormod(a, b);
}

SymInt floordiv(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return floor_quotient(a.hint(), b.hint());
  return {te::floordiv(a.expr(), b.expr()), table_of(a, b)};
}

SymInt floormod(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return a.hint() - floor_quotient(a.hint(), b.hint()) * b.hint();
  return {te::floormod(a.expr(), b.expr()), table_of(a, b)};
}

SymInt ceildiv(const SymInt& a, const SymInt& b) { return floordiv(a + b - 1, b); }

namespace {

/// What is not so at the hints has no proof: facts hold there.
bool may_have_proof(Relation relation, const SymInt& a, const SymInt& b) {
  const std::optional<int64_t> left = a.known_hint(), right = b.known_hint();
  return !left || !right || holds_of(relation, *left, *right);
}

bool is_never_above(const SymInt& a, const SymInt& b) {
  return may_have_proof(Relation::kLessEqual, a, b) &&
         table_of(a, b)->proves_with_zeros(Relation::kLessEqual, a, b).value_or(false);
}

/// Where one side is the number that no integer is beyond, as minima and maxima of lists begin with: the
/// other side. The difference to it would be no int64.
std::optional<SymInt> beside_limit(const SymInt& a, const SymInt& b, int64_t limit) {
  if (a.is_constant() && a.hint() == limit) return b;
  if (b.is_constant() && b.hint() == limit) return a;
  return std::nullopt;
}

}  // namespace

SymInt min(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.hint(), b.hint());
  if (auto other = beside_limit(a, b, std::numeric_limits<int64_t>::max())) return *std::move(other);
  if (is_never_above(a, b)) return a;
  if (is_never_above(b, a)) return b;
  return {te::min(a.expr(), b.expr()), table_of(a, b)};
}

SymInt max(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.hint(), b.hint());
  if (auto other = beside_limit(a, b, std::numeric_limits<int64_t>::min())) return *std::move(other);
  if (is_never_above(a, b)) return b;
  if (is_never_above(b, a)) return a;
  return {te::max(a.expr(), b.expr()), table_of(a, b)};
}

SymInt call(std::string_view function, const std::vector<SymInt>& args) {
  std::vector<te::Dim> exprs;
  std::shared_ptr<SymbolTable> table;
  for (const SymInt& arg : args) {
    exprs.push_back(arg.expr());
    if (!arg.is_constant()) table = table_of(arg, arg);
  }
  return {te::call(function, std::move(exprs)), table};
}

std::string to_string(const SymInt& value) { return value.expr().to_string(); }

bool decide(Relation relation, const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return holds_of(relation, a.hint(), b.hint());
  return table_of(a, b)->decide(relation, a, b);
}

bool demand(Relation relation, const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return holds_of(relation, a.hint(), b.hint());
  return table_of(a, b)->demand(relation, a, b);
}

bool demand_divisible(const SymInt& a, const SymInt& b) {
  return demand(Relation::kEqual, floormod(a, b), 0);
}

bool demand_equal(const SymShape& a, const SymShape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!demand(Relation::kEqual, a[i], b[i])) return false;
  }
  return true;
}

bool is_proven(Relation relation, const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return holds_of(relation, a.hint(), b.hint());
  if (!may_have_proof(relation, a, b)) return false;
  const std::shared_ptr<SymbolTable> table = table_of(a, b);
  if (const std::optional<bool> proven = table->proves_with_zeros(relation, a, b)) return *proven;
  // That it is false of extents of 1 or more decides nothing: there is no need to leave others out.
  return table->truth(relation, a, b) == te::Truth::kProven && table->proves(relation, a, b).value_or(false);
}

bool same(const SymInt& a, const SymInt& b) {
  if (a.is_constant() || b.is_constant()) return a.is_constant() && b.is_constant() && a.hint() == b.hint();
  return a.expr() == b.expr();
}

std::string to_string(const Guard& guard) {
  const char* const names[2][3] = {{" != ", " >= ", " > "}, {" == ", " < ", " <= "}};
  return guard.left.to_string() + names[guard.holds ? 1 : 0][static_cast<size_t>(guard.relation)] +
         guard.right.to_string();
}

bool holds_at(const Guard& guard, const std::map<std::string, int64_t>& values) {
  const std::optional<int64_t> left = guard.left.evaluate(values), right = guard.right.evaluate(values);
  return left && right && holds_of(guard.relation, *left, *right) == guard.holds;
}

std::optional<Guard> parse_guard(std::string_view text) {
  const std::pair<std::string_view, std::pair<Relation, bool>> relations[] = {
      {" == ", {Relation::kEqual, true}},     {" != ", {Relation::kEqual, false}},
      {" <= ", {Relation::kLessEqual, true}}, {" >= ", {Relation::kLess, false}},
      {" < ", {Relation::kLess, true}},       {" > ", {Relation::kLessEqual, false}}};
  for (const auto& [name, meaning] : relations) {
    const size_t at = text.find(name);
    if (at == std::string_view::npos) continue;
    return Guard{meaning.first,
                 meaning.second,
                 te::parse_dim(text.substr(0, at)),
                 te::parse_dim(text.substr(at + name.size())),
                 {},
                 false};
  }
  return std::nullopt;
}

SymInt SymbolTable::add(const std::string& name, int64_t hint, int64_t low) {
  TM_CHECK(hints_.emplace(name, hint).second, "symbol " + name + " exists already");
  declare({name, te::Dim(low), te::Dim(std::min<int64_t>(low, 0)), std::nullopt});
  return {te::Dim::symbol(name), shared_from_this()};
}

void SymbolTable::declare(Declared symbol) {
  facts_.declare(symbol.name, symbol.low, symbol.high);
  facts_with_zeros_.declare(symbol.name, symbol.low_with_zeros, symbol.high);
  answers_ = answers_with_zeros_ = {};
  declared_.push_back(std::move(symbol));
}

void SymbolTable::drop_guards_behind(size_t count) {
  if (guards_.size() <= count) return;
  std::vector<Guard> kept(guards_.begin(), guards_.begin() + static_cast<std::ptrdiff_t>(count));
  guards_.clear();
  facts_ = facts_with_zeros_ = {};
  for (Declared& symbol : std::exchange(declared_, {})) declare(std::move(symbol));
  for (const Guard& guard : kept) add_guard(guard);
}

SymInt SymbolTable::add_run_time_symbol(const RunSymbol& symbol, int64_t hint) {
  TM_CHECK(hints_.emplace(symbol.name, hint).second, "symbol " + symbol.name + " exists already");
  of_run_.push_back(symbol);
  const auto low = [&](int64_t least) {
    return symbol.low ? std::optional(te::Dim(std::max(*symbol.low, least))) : std::nullopt;
  };
  declare({symbol.name, low(1), low(0), symbol.high});
  return {te::Dim::symbol(symbol.name), shared_from_this()};
}

const RunSymbol* SymbolTable::find_run_time_symbol(const std::string& name) const {
  const auto found =
      std::find_if(of_run_.begin(), of_run_.end(), [&](const RunSymbol& each) { return each.name == name; });
  return found == of_run_.end() ? nullptr : &*found;
}

bool SymbolTable::is_run_time(const te::Dim& dim) const {
  if (of_run_.empty()) return false;
  const std::vector<std::string> symbols = dim.symbols();
  return std::any_of(symbols.begin(), symbols.end(),
                     [&](const std::string& symbol) { return find_run_time_symbol(symbol) != nullptr; });
}

bool SymbolTable::is_fact(const Guard& guard) const {
  if (!is_run_time(guard)) return true;
  // What is computed before a run binds a symbol must not rely on what is checked then. Of symbols that
  // nothing else bounds the guard says nothing about others.
  for (const te::Dim* side : {&guard.left, &guard.right}) {
    for (const std::string& symbol : side->symbols()) {
      const RunSymbol* own = find_run_time_symbol(symbol);
      if (own == nullptr || (own->high && !own->high->is_constant())) return false;
    }
  }
  return true;
}

void SymbolTable::add_symbols_of(const SymbolTable& other) {
  for (const auto& [symbol, hint] : other.hints_) {
    if (other.find_run_time_symbol(symbol) == nullptr) static_cast<void>(add(symbol, hint));
  }
  for (const RunSymbol& symbol : other.of_run_)
    static_cast<void>(add_run_time_symbol(symbol, other.hints_.at(symbol.name)));
}

te::Expr SymbolTable::expr_of(const te::Dim& dim) {
  const auto add = [this](const std::string& text) {
    if (variables_.count(text) == 0) variables_.emplace(text, te::make_var(text));
  };
  for (const std::string& symbol : dim.symbols()) add(symbol);
  dim.rewrite([&](const te::Atom& atom) -> std::optional<te::Dim> {
    if (atom->kind == te::DimAtom::Kind::kCall) add(te::of_atom(atom).to_string());
    return std::nullopt;
  });
  return te::to_expr(dim, variables_);
}

std::optional<bool> SymbolTable::proves_with_zeros(Relation relation, const SymInt& a, const SymInt& b) {
  te::Dim difference = difference_of(relation, a, b);
  auto& known = relation == Relation::kEqual ? answers_with_zeros_.equal : answers_with_zeros_.less_equal;
  const auto [answer, is_new] = known.try_emplace(std::move(difference), te::Truth::kUnknown);
  if (is_new) answer->second = truth_of(facts_with_zeros_, relation, answer->first);
  const te::Truth truth = answer->second;
  if (truth != te::Truth::kUnknown) return truth == te::Truth::kProven;
  const auto said = [&](const Guard& guard) {
    return guard.relation == relation && guard.left == a.expr() && guard.right == b.expr();
  };
  const auto found = std::find_if(guards_.begin(), guards_.end(), said);
  return found == guards_.end() ? std::nullopt : std::optional(found->holds);
}

te::Truth SymbolTable::truth(Relation relation, const SymInt& a, const SymInt& b) {
  te::Dim difference = difference_of(relation, a, b);
  auto& known = relation == Relation::kEqual ? answers_.equal : answers_.less_equal;
  const auto [answer, is_new] = known.try_emplace(std::move(difference), te::Truth::kUnknown);
  if (!is_new) return answer->second;
  answer->second = truth_of(facts_, relation, answer->first);
  // Of extents of 1 or more there are fewer minima and maxima than stand in what holds of 0 as well.
  if (answer->second == te::Truth::kUnknown)
    answer->second = truth_of(facts_, relation, facts_.simplify(answer->first));
  return answer->second;
}

std::optional<bool> SymbolTable::proves(Relation relation, const SymInt& a, const SymInt& b, bool demanded) {
  if (const std::optional<bool> proven = proves_with_zeros(relation, a, b)) return proven;
  const te::Truth known = truth(relation, a, b);
  if (known == te::Truth::kUnknown) return std::nullopt;
  const bool holds = known == te::Truth::kProven;
  if (proofs_only_ && relation == Relation::kEqual) return std::nullopt;
  add_guard({relation, holds, a.expr(), b.expr(), origin_, demanded && holds});
  return holds;
}

bool SymbolTable::decide(Relation relation, const SymInt& a, const SymInt& b) {
  if (proofs_only_ && relation == Relation::kEqual && !may_have_proof(relation, a, b)) return false;
  if (const std::optional<bool> proven = proves(relation, a, b)) return *proven;
  if (proofs_only_ && relation == Relation::kEqual) return false;
  const bool holds = holds_of(relation, a.hint(), b.hint());
  add_guard({relation, holds, a.expr(), b.expr(), origin_, false});
  return holds;
}

void SymbolTable::specialize(const SymInt& value, int64_t hint) {
  if (proves(Relation::kEqual, value, hint).value_or(false)) return;
  add_guard({Relation::kEqual, true, value.expr(), te::Dim(hint), origin_, false});
}

bool SymbolTable::holds_at(const std::map<std::string, int64_t>& hints, Relation relation, const te::Dim& a,
                           const te::Dim& b) const {
  const std::optional<int64_t> left = a.evaluate(hints), right = b.evaluate(hints);
  return left && right && holds_of(relation, *left, *right);
}

bool SymbolTable::guards_hold_at(const std::map<std::string, int64_t>& hints) const {
  return std::all_of(guards_.begin(), guards_.end(), [&](const Guard& guard) {
    return holds_at(hints, guard.relation, guard.left, guard.right) == guard.holds;
  });
}

namespace {

/// What `limited` == `dim` says where `limited` is a minimum or maximum of the dim and others.
void assume_limits(const te::Dim& limited, const te::Dim& dim, te::DimFacts& facts) {
  const te::Atom atom = limited.as_atom();
  const bool is_min = atom != nullptr && atom->kind == te::DimAtom::Kind::kMin;
  const bool is_max = atom != nullptr && atom->kind == te::DimAtom::Kind::kMax;
  if ((!is_min && !is_max) || std::find(atom->args.begin(), atom->args.end(), dim) == atom->args.end())
    return;
  for (const te::Dim& other : atom->args) {
    if (other != dim) is_min ? facts.assume_le(dim, other) : facts.assume_le(other, dim);
  }
}

void assume(const Guard& guard, te::DimFacts& facts) {
  const te::Dim one(1);
  const te::Dim &a = guard.left, &b = guard.right;
  if (guard.relation != Relation::kEqual) {
    if (guard.holds) {
      facts.assume_le(guard.relation == Relation::kLess ? a + one : a, b);
    } else {
      facts.assume_le(guard.relation == Relation::kLess ? b : b + one, a);
    }
  } else if (guard.holds) {
    facts.assume_equal(a, b);
    assume_limits(a, b, facts);
    assume_limits(b, a, facts);
  } else if (facts.prove_le(b, a) == te::Truth::kProven) {
    facts.assume_le(b + one, a);
  } else if (facts.prove_le(a, b) == te::Truth::kProven) {
    facts.assume_le(a + one, b);
  }
}

}  // namespace

bool SymbolTable::has_strayed() const { return hints_version_ > 1 && !guards_hold_at(hints_); }

bool SymbolTable::demand(Relation relation, const SymInt& a, const SymInt& b, bool for_all) {
  if (const std::optional<bool> proven = proves(relation, a, b, for_all)) return *proven;
  if (!holds_of(relation, a.hint(), b.hint()) && !move_hints(relation, a.expr(), b.expr())) return false;
  add_guard({relation, true, a.expr(), b.expr(), origin_, for_all});
  return true;
}

void SymbolTable::add_guard(const Guard& guard) {
  guards_.push_back(guard);
  answers_ = answers_with_zeros_ = {};
  // What mixes symbols says nothing that holds of those of one place alone.
  if (!is_fact(guard) || !branch_of(guard)) return;
  for (te::DimFacts* facts : {&facts_, &facts_with_zeros_}) assume(guard, *facts);
}

SymbolTable::ProofsOnly::ProofsOnly(SymbolTable* table) : table_(table) {
  if (table_ != nullptr) before_ = std::exchange(table_->proofs_only_, true);
}

SymbolTable::ProofsOnly::~ProofsOnly() {
  if (table_ != nullptr) table_->proofs_only_ = before_;
}

SymbolTable::Origin::Origin(SymbolTable* table, std::string name) : table_(table) {
  if (table_ != nullptr) before_ = std::exchange(table_->origin_, std::move(name));
}

SymbolTable::Origin::~Origin() {
  if (table_ != nullptr) table_->origin_ = std::move(before_);
}

}  // namespace tensormill::ir
