#include "compiler/frontend/pytorch/script/operators.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/frontend/pytorch/script/file_graph.h"
#include "compiler/frontend/pytorch/script/schemas.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch::script {

namespace {

/// Nodes that an import converts.
constexpr size_t kMostNodes = size_t{1} << 20;

bool holds_lost(const Value& value) {
  if (value.is_lost()) return true;
  const Items* items = value.items();
  return items != nullptr && std::any_of(items->values.begin(), items->values.end(),
                                         [](const Value& each) { return each.is_lost(); });
}

bool is_lost(const Call& call) {
  return std::any_of(call.arguments.begin(), call.arguments.end(), holds_lost) ||
         std::any_of(call.keywords.begin(), call.keywords.end(),
                     [](const auto& keyword) { return holds_lost(keyword.second); });
}

/// Whether the value may stand where the schema has `type`. `is_lenient`: also what is made to fit.
bool fits(std::string_view type, const Value& value, bool is_lenient) {
  if (type.starts_with('*')) type.remove_prefix(1);
  if (type.ends_with('?')) return value.is_none() || fits(type.substr(0, type.size() - 1), value, is_lenient);
  if (type == "x") return true;
  if (type.starts_with('[')) {
    const std::string_view inner = type.substr(1, type.size() - 2);
    const Items* items = value.items();
    if (items == nullptr) return is_lenient && fits(inner, value, false);
    return std::all_of(items->values.begin(), items->values.end(),
                       [&](const Value& each) { return fits(inner, each, is_lenient); });
  }
  if (type == "T") return value.is_tensor() || (is_lenient && value.is_number());
  if (is_lenient && value.is_tensor() && type != "s") return true;
  if (type == "s") return value.as<std::string>() != nullptr;
  if (type == "b") return value.as<bool>() != nullptr;
  if (type == "i") return value.as<ir::SymInt>() != nullptr || (is_lenient && value.as<bool>() != nullptr);
  return value.is_number();
}

bool fits(const Schema& schema, const Call& call, bool is_lenient) {
  const std::vector<SchemaArgument>& own = schema.row->arguments;
  if (call.arguments.size() > own.size()) return false;
  std::vector<bool> is_given(own.size(), false);
  const auto place = [&](size_t at, const Value& value) {
    is_given[at] = true;
    return at >= schema.arguments.size() || fits(schema.arguments[at], value, is_lenient);
  };
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const bool is_named = i < schema.arguments.size() && schema.arguments[i].starts_with('*');
    if (is_named || !place(i, call.arguments[i])) return false;
  }
  for (const auto& keyword : call.keywords) {
    const std::string& name = keyword.first;
    const auto found =
        std::find_if(own.begin(), own.end(), [&](const SchemaArgument& each) { return each.name == name; });
    if (found == own.end() || !place(static_cast<size_t>(found - own.begin()), keyword.second)) return false;
  }
  for (size_t i = 0; i < own.size(); ++i)
    if (!is_given[i] && !own[i].otherwise) return false;
  return true;
}

/// The number that the schema of exported programs has for one of TorchScript's, which counts from 0.
int64_t schema_dtype(int64_t number) {
  if (number >= 0 && number <= 11) return number + 1;
  if (number == 15) return static_cast<int64_t>(ScalarType::kBFloat16);
  if (number == 27) return static_cast<int64_t>(ScalarType::kUInt16);
  if (number == 28) return static_cast<int64_t>(ScalarType::kUInt32);
  if (number == 29) return static_cast<int64_t>(ScalarType::kUInt64);
  return static_cast<int64_t>(ScalarType::kUnknown);
}

bool is_dtype_name(const std::string& name) { return name == "dtype" || name == "out_dtype"; }

std::string arguments_text(const Call& call) {
  std::string text;
  for (const Value& value : call.arguments) text += (text.empty() ? "" : ", ") + kind_of(value);
  for (const auto& [name, value] : call.keywords)
    text += (text.empty() ? "" : ", ") + name + "=" + kind_of(value);
  return "(" + text.substr(0, 300) + ")";
}

}  // namespace

bool has_operator(const std::string& name) { return !schemas_of(name).empty(); }

std::string Operators::unique(const std::string& hint) {
  const std::string base = hint.empty() ? "_" : hint;
  std::string name = base;
  while (!taken_.insert(name).second) name = base + "_" + std::to_string(++counts_[base]);
  return name;
}

void Operators::note_missing(const std::string& what, const std::string& why, const Call& call) {
  missing_.add({"op " + what.substr(0, 300), to_string(call.place), "operands " + arguments_text(call),
                call_path(call.place, call.name)},
               why.substr(0, 300));
}

const OpRow* Operators::row_of(const Call& call) const {
  const std::vector<Schema>& all = schemas_of(call.name);
  for (const bool is_lenient : {false, true})
    for (const Schema& schema : all)
      if (fits(schema, call, is_lenient)) return schema.row;
  return nullptr;
}

Json Operators::number_json(const Value& value) {
  if (const auto* truth = value.as<bool>()) return *truth;
  if (const auto* number = value.as<double>()) {
    if (std::isfinite(*number)) return *number;
    return std::isnan(*number) ? "nan" : *number > 0 ? "inf" : "-inf";
  }
  const auto* real = value.as<ExtentReal>();
  const ir::SymInt whole = real != nullptr ? ir::SymInt(0) : whole_of(value);
  if (real == nullptr && whole.is_constant()) return whole.hint();
  const std::string name = "n" + std::to_string(numbers_++);
  if (real != nullptr) {
    state_.extent_reals.insert_or_assign(name, *real);
  } else {
    state_.numbers.insert_or_assign(name, whole);
  }
  return {{"as_name", name}};
}

Argument Operators::argument_of(const Value& value, const std::string& name, const Call& call) {
  Argument argument;
  if (value.is_none() || value.is_lost()) return argument;
  if (const auto* tensor = value.as<TensorRef>()) {
    argument.kind = ArgumentKind::kTensor;
    argument.names = {tensor->name};
    return argument;
  }
  if (const auto* text = value.as<std::string>()) {
    argument.kind = ArgumentKind::kString;
    argument.value = *text;
    return argument;
  }
  if (value.is_number()) {
    argument.kind = value.as<bool>() != nullptr ? ArgumentKind::kBool
                    : value.is_real()           ? ArgumentKind::kFloat
                                                : ArgumentKind::kSymInt;
    argument.value = number_json(value);
    if (is_dtype_name(name)) {
      argument.kind = ArgumentKind::kScalarType;
      argument.value = schema_dtype(whole_of(value));
    }
    return argument;
  }
  const Items* items = value.items();
  if (items == nullptr)
    throw Error(ErrorCode::kInvalidModel,
                call.name + ": argument " + name + " is a " + kind_of(value) + ", which no operator takes");
  const bool has_tensors = std::any_of(items->values.begin(), items->values.end(),
                                       [](const Value& each) { return each.is_tensor(); });
  argument.value = Json::array();
  for (const Value& each : items->values) {
    if (has_tensors) {
      const auto* tensor = each.as<TensorRef>();
      if (tensor == nullptr && !each.is_none())
        throw Error(ErrorCode::kInvalidModel, call.name + ": argument " + name + " mixes tensors and others");
      argument.names.push_back(tensor == nullptr ? std::string() : tensor->name);
    } else {
      argument.value.push_back(number_json(each));
    }
  }
  const bool has_reals = std::any_of(items->values.begin(), items->values.end(),
                                     [](const Value& each) { return each.is_real(); });
  argument.kind = has_tensors ? ArgumentKind::kOptionalTensors
                  : has_reals ? ArgumentKind::kFloats
                              : ArgumentKind::kSymInts;
  return argument;
}

/// A tensor of one element where a number has to be is that number.
Value Operators::as_number(const OpRow& row, size_t index, const Value& value, const Call& call) {
  const std::vector<std::string>& types = schema_of(row).arguments;
  if (!value.is_tensor() || index >= types.size()) return value;
  const bool is_number =
      types[index].find_first_of("ifbn") != std::string::npos && types[index].find('[') == std::string::npos;
  return is_number ? number_in(value, call) : value;
}

Node Operators::node_of(const OpRow& row, const Call& call) {
  Node node;
  node.target = row.target;
  node.name = unique(call.hint);
  const auto add = [&](const std::string& name, const Value& value) {
    const auto declared = std::find_if(row.arguments.begin(), row.arguments.end(),
                                       [&](const SchemaArgument& each) { return each.name == name; });
    // Devices and layouts may be of kinds that no argument has.
    if (declared != row.arguments.end() && declared->is_unread) return;
    const Value own = as_number(row, static_cast<size_t>(declared - row.arguments.begin()), value, call);
    node.inputs.push_back({name, argument_of(own, name, call)});
  };
  for (size_t i = 0; i < call.arguments.size(); ++i) add(row.arguments[i].name, call.arguments[i]);
  for (const auto& [name, value] : call.keywords) add(name, value);
  return node;
}

bool Operators::convert(NodeContext& context, const OpRow& row, const Call& call) {
  if (++converted_ > kMostNodes)
    throw Error(ErrorCode::kTooLarge, "more than " + std::to_string(kMostNodes) + " nodes");
  const ir::SymbolTable::Origin origin(state_.import.graph.symbols().get(), context.label());
  try {
    ir::as_invalid_model([&] { convert_node(context); });
    context.check_read();
    return true;
  } catch (const UnsupportedForm& form) {
    note_missing(row.target, form.attribute + ": " + form.reason, call);
    return false;
  } catch (Error& error) {
    error.add_context(row.target + " \"" + context.label() + "\"");
    if (error.code() == ErrorCode::kInvalidTensor) throw Error(ErrorCode::kInvalidModel, error.message());
    throw;
  }
}

Value Operators::results_of(const NodeContext& context, const OpRow& row) const {
  const std::vector<std::string>& results = schema_of(row).results;
  const std::vector<std::string>& names = context.outputs();
  if (results.empty()) return {};
  if (results.front() == "[T]") {
    std::vector<Value> parts;
    for (const std::string& name : names) parts.push_back({TensorRef{name}});
    return list_of(std::move(parts));
  }
  std::vector<Value> values;
  for (size_t i = 0; i < results.size(); ++i)
    values.push_back(
        {TensorRef{i < names.size() ? names[i] : context.node().name + "." + std::to_string(i)}});
  return values.size() == 1 ? values.front() : tuple_of(std::move(values));
}

// So does TorchScript's own optimizer: a number that was traced stands in the file as a tensor without dims,
// and its type is that of a number.
Call Operators::with_numbers(Call call) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "aten.add", "aten.add_", "aten.sub", "aten.sub_", "aten.mul", "aten.mul_", "aten.div", "aten.div_"};
  const bool is_such = std::find(kNames.begin(), kNames.end(), call.name) != kNames.end();
  if (!is_such || call.arguments.size() < 2) return call;
  const auto* other = call.arguments[1].as<TensorRef>();
  if (other == nullptr || scalars_.count(other->name) == 0) return call;
  const Value number = number_in(call.arguments[1], call);
  if (!number.is_lost()) call.arguments[1] = number;
  return call;
}

Value Operators::call(const Call& given) {
  // What is not there is told whatever its operands are.
  if (!has_operator(given.name)) {
    note_missing(given.name, why_missing(given.name), given);
    return {Lost()};
  }
  if (is_lost(given)) return {Lost()};
  const Call call = with_numbers(given);
  const OpRow* row = row_of(call);
  if (row == nullptr) {
    note_missing(call.name, "its form with arguments " + arguments_text(call), call);
    return {Lost()};
  }
  const size_t lost = lost_numbers_;
  const Node node = node_of(*row, call);
  if (lost_numbers_ != lost) return {Lost()};
  NodeContext context(state_, node, *row, node.name);
  if (!convert(context, *row, call)) return {Lost()};
  return results_of(context, *row);
}

Value Operators::number(const std::string& target, const std::vector<Value>& operands, const Call& call) {
  const OpRow* row = find_row(target);
  if (row == nullptr) throw Error(ErrorCode::kInternal, "there is no operator " + target);
  Node node;
  node.target = target;
  node.name = call.hint.empty() ? "_" : call.hint;
  for (size_t i = 0; i < operands.size(); ++i)
    node.inputs.push_back({row->arguments.at(i).name, argument_of(operands[i], "", call)});
  const std::string result = "r";
  node.outputs.emplace_back();
  node.outputs.back().kind = ArgumentKind::kSymInt;
  node.outputs.back().value = {{"as_name", result}};
  NodeContext context(state_, node, *row, node.name);
  if (!convert(context, *row, call)) return {Lost()};
  if (auto real = state_.extent_reals.extract(result)) return {std::move(real.mapped())};
  const Number made = state_.numbers.at(result);
  state_.numbers.erase(result);
  if (const auto* truth = std::get_if<bool>(&made)) return {*truth};
  if (const auto* real = std::get_if<double>(&made)) return {*real};
  return {std::get<ir::SymInt>(made)};
}

Value Operators::tensor_of(const Value& number, const Call& call) {
  Call made = call;
  made.name = "aten.scalar_tensor";
  made.arguments = {number};
  const int64_t dtype = number.as<bool>() != nullptr ? 11 : number.is_real() ? 6 : 4;
  made.keywords = {{"dtype", {ir::SymInt(dtype)}}};
  return this->call(made);
}

Value Operators::number_in(const Value& tensor, const Call& call) {
  if (tensor.is_lost()) return tensor;
  Value made = number("aten.item.default", {tensor}, call);
  if (made.is_lost()) ++lost_numbers_;
  return made;
}

Value Operators::constant(Tensor tensor, const Call& call) {
  const std::string name = unique(call.hint);
  auto storage = std::make_shared<Storage>();
  build::OpBuilder builder(state_.import.graph, name, name, state_.import.reserved);
  storage->value = builder.constant(std::move(tensor));
  storage->layout = row_major_layout(dims_of(builder.type(storage->value).shape));
  storage->name = name;
  const V value = storage->value;
  state_.tensors.insert_or_assign(name, View{std::move(storage), {}, value, 0});
  return {TensorRef{name}};
}

Value Operators::stored(const StoredTensor& tensor, const std::string& name) {
  const auto known = stored_.find(&tensor);
  if (known != stored_.end()) return {TensorRef{known->second}};
  auto storage = std::make_shared<Storage>();
  storage->stored = &tensor;
  storage->name = unique(name);
  storage->is_weight = true;
  const std::string own = storage->name;
  View view{std::move(storage)};
  view.is_complex = part_type(tensor.dtype).has_value();
  state_.tensors.insert_or_assign(own, std::move(view));
  stored_.emplace(&tensor, own);
  return {TensorRef{own}};
}

Value Operators::constant_of(const PickleValue& value, const std::string& name) {
  Value made = of(value, name);
  const auto* tensor = made.as<TensorRef>();
  if (tensor != nullptr && value.tensor.sizes.empty() && !is_complex(made)) scalars_.insert(tensor->name);
  return made;
}

Value Operators::of(const PickleValue& value, const std::string& path) {
  spend(1);
  switch (value.kind) {
    case PickleValue::Kind::kNone:
      return {};
    case PickleValue::Kind::kBool:
      return {value.number != 0};
    case PickleValue::Kind::kInt:
      return {ir::SymInt(value.number)};
    case PickleValue::Kind::kFloat:
      return {value.real};
    case PickleValue::Kind::kText:
      return {value.text};
    case PickleValue::Kind::kTensor:
      return stored(value.tensor, path);
    case PickleValue::Kind::kObject:
      return {ObjectRef{&value, path}};
    case PickleValue::Kind::kTuple:
    case PickleValue::Kind::kList: {
      std::vector<Value> values;
      for (size_t i = 0; i < value.items.size(); ++i)
        values.push_back(of(*value.items[i], path + "." + std::to_string(i)));
      return value.kind == PickleValue::Kind::kTuple ? tuple_of(std::move(values))
                                                     : list_of(std::move(values));
    }
    case PickleValue::Kind::kDict: {
      auto dict = std::make_shared<Dict>();
      for (size_t i = 0; i + 1 < value.items.size(); i += 2)
        dict->entries.emplace_back(of(*value.items[i], path), of(*value.items[i + 1], path));
      return {std::move(dict)};
    }
    default:
      throw Error(ErrorCode::kInvalidModel, "\"" + path + "\" is of a kind that no code reads");
  }
}

bool Operators::is_complex(const Value& tensor) const {
  const auto* ref = tensor.as<TensorRef>();
  const auto found = ref == nullptr ? state_.tensors.end() : state_.tensors.find(ref->name);
  return found != state_.tensors.end() && found->second.is_complex;
}

ir::ValueType Operators::type_of(const Value& tensor, const Call& call) {
  ir::ValueType type = state_.import.graph.value(read(tensor, call)).type;
  if (is_complex(tensor)) type.shape.pop_back();
  return type;
}

ir::ValueId Operators::value_of(const Value& tensor, const Call& call) {
  if (is_complex(tensor))
    throw Error(ErrorCode::kNotSupported,
                call.name + " is complex, which is not implemented: take torch.view_as_real() of it");
  return read(tensor, call);
}

ir::ValueId Operators::read(const Value& tensor, const Call& call) {
  const auto* ref = tensor.as<TensorRef>();
  if (ref == nullptr)
    throw Error(ErrorCode::kInvalidModel, call.name + ": a " + kind_of(tensor) + " where a tensor has to be");
  const OpRow* row = find_row("aten.alias.default");
  Node node;
  node.target = row->target;
  node.name = "_";
  node.inputs.push_back({"self", argument_of(tensor, "self", call)});
  NodeContext context(state_, node, *row, ref->name);
  try {
    return is_complex(tensor) ? context.pairs("self") : context.tensor("self");
  } catch (const UnsupportedForm& form) {
    throw Error(ErrorCode::kNotSupported, call.name + ": " + form.reason);
  }
}

}  // namespace tensormill::frontend::pytorch::script
