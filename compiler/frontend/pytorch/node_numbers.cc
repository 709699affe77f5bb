// Numbers among a node's arguments: of the file, of extents, and of a run.
#include <algorithm>
#include <limits>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/frontend/pytorch/node_context.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch {

namespace {

/// Numbers that JSON lacks are texts.
std::optional<double> named_number(const std::string& text) {
  if (text == "Infinity" || text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity" || text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

bool mentions(const SymExpr& expr, const std::string& symbol) {
  if (expr.kind == SymExpr::Kind::kSymbol) return expr.name == symbol;
  return std::any_of(expr.args.begin(), expr.args.end(),
                     [&](const SymExpr& each) { return mentions(each, symbol); });
}

bool has_extent_of(const TensorMeta& meta, const std::string& symbol) {
  return std::any_of(meta.sizes.begin(), meta.sizes.end(),
                     [&](const SymDim& size) { return size.expr && mentions(*size.expr, symbol); });
}

}  // namespace

ir::SymInt NodeContext::sym_of(const Json& json, const char* name) {
  const Number value = number_of(json, ArgumentKind::kSymInt, name);
  if (const auto* integer = std::get_if<ir::SymInt>(&value)) return *integer;
  bad(name, "integer");
}

Number NodeContext::number_of(const Json& json, ArgumentKind kind, const char* name) {
  if (json.is_object() && json.size() == 1) {
    const Json& value = json.begin().value();
    if (json.begin().key() == "as_name" && value.is_string()) {
      const std::string& made = value.get_ref<const std::string&>();
      const auto found = state_.numbers.find(made);
      if (found != state_.numbers.end()) return found->second;
      const auto real = state_.extent_reals.find(made);
      if (real != state_.extent_reals.end()) return real->second.fixed();
      unsupported(name, "a number that a run works out is not implemented");
    }
    return number_of(value, kind, name);
  }
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) {
    if (kind == ArgumentKind::kFloat || kind == ArgumentKind::kSymFloat) return json.get<double>();
    return ir::SymInt(json.get<int64_t>());
  }
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string())
    if (const std::optional<double> named = named_number(json.get<std::string>())) return *named;
  bad(name, "number");
}

Number NodeContext::number(const char* name) {
  const Argument* argument = given(name);
  if (argument == nullptr) return number_of(*declared(name).otherwise, ArgumentKind::kNone, name);
  if (argument->kind == ArgumentKind::kComplex) {
    if (!parts_) unsupported(name, "complex numbers are not implemented here");
    const auto [real, imaginary] = complex_number(*argument, name);
    return part_of(name) == Part::kReal ? real : imaginary;
  }
  const Number value = number_of(argument->value, argument->kind, name);
  if (!is_filled(name)) return value;
  if (std::holds_alternative<double>(value)) return 0.0;
  return std::holds_alternative<bool>(value) ? Number(false) : Number(ir::SymInt(0));
}

const std::string* NodeContext::made_number(const char* name) {
  const Argument* argument = given(name);
  if (argument == nullptr || !argument->value.is_object() || argument->value.size() != 1) return nullptr;
  const Json& value = argument->value.begin().value();
  if (argument->value.begin().key() != "as_name" || !value.is_string()) return nullptr;
  return &value.get_ref<const std::string&>();
}

const std::string* NodeContext::own_number() const {
  for (const Argument& output : node_.outputs) {
    if (!output.value.is_object() || output.value.size() != 1) continue;
    const Json& name = output.value.begin().value();
    return name.is_string() ? &name.get_ref<const std::string&>() : nullptr;
  }
  return nullptr;
}

std::optional<RunNumber> NodeContext::run_number(const char* name) {
  const std::string* made = made_number(name);
  const auto found = made == nullptr ? state_.run_numbers.end() : state_.run_numbers.find(*made);
  return found == state_.run_numbers.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ExtentReal> NodeContext::extent_real(const char* name) {
  const std::string* made = made_number(name);
  const auto found = made == nullptr ? state_.extent_reals.end() : state_.extent_reals.find(*made);
  return found == state_.extent_reals.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Ratio> NodeContext::ratio(const char* name) {
  if (run_number(name)) return std::nullopt;
  if (const std::optional<ExtentReal> real = extent_real(name)) return real->ratio;
  const Number own = number(name);
  if (const auto* real = std::get_if<double>(&own)) return ratio_of(*real);
  if (const auto* truth = std::get_if<bool>(&own)) return Ratio{int64_t{*truth}};
  return Ratio{std::get<ir::SymInt>(own)};
}

void NodeContext::set_number(Number value) {
  if (const std::string* name = own_number()) state_.numbers.insert_or_assign(*name, std::move(value));
}

void NodeContext::set_run_number(RunNumber value) {
  if (const std::string* name = own_number()) state_.run_numbers.insert_or_assign(*name, value);
}

void NodeContext::set_extent_real(ExtentReal value) {
  if (const std::string* name = own_number()) state_.extent_reals.insert_or_assign(*name, std::move(value));
}

ir::SymInt NodeContext::sym(const char* name) {
  const Number value = number(name);
  if (const auto* integer = std::get_if<ir::SymInt>(&value)) return *integer;
  if (const auto* is_set = std::get_if<bool>(&value)) return int64_t{*is_set};
  bad(name, "integer");
}

ir::SymShape NodeContext::syms(const char* name) {
  const Argument* argument = given(name);
  const Json& json = argument == nullptr ? *declared(name).otherwise : argument->value;
  if (!json.is_array()) return {sym_of(json, name)};
  ir::SymShape values;
  for (const Json& each : json) values.push_back(sym_of(each, name));
  return values;
}

int64_t NodeContext::fixed(const ir::SymInt& value, const char* name) const {
  if (!value.is_constant() && value.table()->is_run_time(value.expr()))
    unsupported(name, "a number that a run works out is not implemented");
  return value;
}

int64_t NodeContext::integer(const char* name) {
  constexpr int64_t kMost = int64_t{1} << 61;
  const int64_t value = fixed(sym(name), name);
  if (value < -kMost || value > kMost)
    invalid("argument " + std::string(name) + " is " + std::to_string(value));
  return value;
}

ir::Ints NodeContext::ints(const char* name) {
  std::vector<int64_t> values;
  for (const ir::SymInt& value : syms(name)) values.push_back(fixed(value, name));
  return values;
}

double NodeContext::real(const char* name) {
  const Number value = number(name);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* is_set = std::get_if<bool>(&value)) return *is_set ? 1 : 0;
  return static_cast<double>(fixed(std::get<ir::SymInt>(value), name));
}

ir::CheckedList<double> NodeContext::reals(const char* name) {
  const Argument* argument = given(name);
  const Json& json = argument == nullptr ? *declared(name).otherwise : argument->value;
  if (!json.is_array()) bad(name, "list of numbers");
  std::vector<double> values;
  for (const Json& each : json) {
    const Number value = number_of(each, ArgumentKind::kFloat, name);
    if (const auto* number = std::get_if<double>(&value)) {
      values.push_back(*number);
    } else {
      bad(name, "list of numbers");
    }
  }
  return values;
}

bool NodeContext::flag(const char* name) {
  const Number value = number(name);
  if (const auto* is_set = std::get_if<bool>(&value)) return *is_set;
  if (const auto* integer = std::get_if<ir::SymInt>(&value)) return *integer != 0;
  bad(name, "truth value");
}

std::optional<SymbolRange> NodeContext::extent_range() const {
  for (const Argument& output : node_.outputs) {
    if (!output.value.is_object() || output.value.size() != 1) continue;
    const Json& name = output.value.begin().value();
    if (!name.is_string()) continue;
    const auto number = state_.graph.sym_ints.find(name.get<std::string>());
    const bool is_symbol = number != state_.graph.sym_ints.end() && number->second.expr &&
                           number->second.expr->kind == SymExpr::Kind::kSymbol;
    if (!is_symbol) continue;
    const std::string& symbol = number->second.expr->name;
    const auto& tensors = state_.graph.tensors;
    if (std::none_of(tensors.begin(), tensors.end(),
                     [&](const auto& entry) { return has_extent_of(entry.second, symbol); }))
      continue;
    const auto& ranges = state_.import.loaded.program().ranges;
    const auto range = ranges.find(symbol);
    return range == ranges.end() ? SymbolRange{} : range->second;
  }
  return std::nullopt;
}

ir::SymInt NodeContext::bind_number(V x, int64_t low, const std::optional<ir::SymInt>& high) {
  Compose c(*this);
  return build::bind_run_numbers(*this, c.reshape(c.cast(x, DType::kInt64), {1}), low, high)[0];
}

std::optional<ir::SymInt> NodeContext::said_extent(size_t axis) const {
  if (!state_.is_typed) return std::nullopt;
  if (axis >= output_meta().sizes.size()) return std::nullopt;
  const SymDim& size = output_meta().sizes[axis];
  if (size.value) return *size.value;
  if (!size.expr || size.expr->kind != SymExpr::Kind::kSymbol) return std::nullopt;
  for (const auto& [name, dim] : state_.graph.sym_ints) {
    const bool is_it =
        dim.expr && dim.expr->kind == SymExpr::Kind::kSymbol && dim.expr->name == size.expr->name;
    const auto number = is_it ? state_.numbers.find(name) : state_.numbers.end();
    if (number == state_.numbers.end()) continue;
    if (const auto* extent = std::get_if<ir::SymInt>(&number->second)) return *extent;
  }
  return std::nullopt;
}

}  // namespace tensormill::frontend::pytorch
