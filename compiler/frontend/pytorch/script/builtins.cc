#include "compiler/frontend/pytorch/script/builtins.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/frontend/pytorch/script/builtin_functions.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch::script {

namespace {

// ---- of tensors

Result size_of(Operators& operators, const Call& call) {
  const ir::SymShape shape = operators.shape_of(argument(call, 0), call);
  if (call.arguments.size() > 1) return Value{shape[place_in(call.arguments[1], shape.size())]};
  std::vector<Value> extents;
  for (const ir::SymInt& extent : shape) extents.push_back({extent});
  return list_of(std::move(extents));
}

Result rank_of(Operators& operators, const Call& call) {
  return integer(static_cast<int64_t>(operators.type_of(argument(call, 0), call).shape.size()));
}

Result elements_of(Operators& operators, const Call& call) {
  return Value{num_elements(operators.shape_of(argument(call, 0), call))};
}

/// The number that TorchScript has for a type.
int64_t dtype_number(DType dtype) {
  const std::string_view name = dtype_long_name(dtype);
  static constexpr std::array<std::string_view, 12> kNames = {
      "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "", "", "", "bool"};
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<int64_t>(i);
  return name == "bfloat16" ? 15 : 27;
}

Result dtype_of_tensor(Operators& operators, const Call& call) {
  if (operators.is_complex(argument(call, 0)))
    return integer(operators.type_of(call.arguments[0], call).dtype == DType::kFloat64 ? 10 : 9);
  return integer(dtype_number(operators.type_of(argument(call, 0), call).dtype));
}

Result is_real(Operators& operators, const Call& call) {
  return Value{is_float(operators.type_of(argument(call, 0), call).dtype) &&
               !operators.is_complex(call.arguments[0])};
}

Result is_complex(Operators& operators, const Call& call) {
  return Value{operators.is_complex(argument(call, 0))};
}

Result device_of(Operators&, const Call&) { return Value{std::string("cpu")}; }
Result never(Operators&, const Call&) { return Value{false}; }
Result zero(Operators&, const Call&) { return integer(0); }
Result nothing(Operators&, const Call&) { return Value(); }
Result itself(Operators&, const Call& call) { return argument(call, 0); }

Result number_to_tensor(Operators& operators, const Call& call) {
  if (!argument(call, 0).is_number()) invalid_call(call, "of a " + kind_of(argument(call, 0)));
  return operators.tensor_of(call.arguments[0], call);
}

Result item(Operators& operators, const Call& call) { return operators.number_in(argument(call, 0), call); }

/// Elements of nested lists in order, and how the lists are nested.
void gather(const Value& value, size_t depth, Shape& shape, std::vector<Value>& elements, const Call& call) {
  const Items* items = value.items();
  if (items == nullptr) {
    if (!value.is_number() || depth != shape.size()) invalid_call(call, "lists that are no tensor");
    elements.push_back(value);
    return;
  }
  const auto count = static_cast<int64_t>(items->values.size());
  if (depth == shape.size() && elements.empty() && depth < 16) shape.push_back(count);
  if (depth >= shape.size() || shape[depth] != count) invalid_call(call, "lists that are no tensor");
  for (const Value& each : items->values) gather(each, depth + 1, shape, elements, call);
}

Result tensor_from(Operators& operators, const Call& call) {
  const Value& data = argument(call, 0);
  if (data.is_tensor()) return std::nullopt;
  std::optional<int64_t> wanted;
  for (const auto& [name, value] : call.keywords)
    if (name == "dtype" && !value.is_none()) wanted = whole_of(value);
  if (!wanted && call.arguments.size() > 1 && call.arguments[1].as<ir::SymInt>() != nullptr)
    wanted = whole_of(call.arguments[1]);
  Shape shape;
  std::vector<Value> elements;
  gather(data, 0, shape, elements, call);
  operators.spend(elements.size());
  DType own = elements.empty() ? DType::kFloat32 : DType::kBool;
  for (const Value& each : elements) {
    if (each.is_real()) own = DType::kFloat32;
    if (each.as<ir::SymInt>() != nullptr && own == DType::kBool) own = DType::kInt64;
  }
  const bool is_known = std::all_of(elements.begin(), elements.end(), [](const Value& each) {
    return each.as<ir::SymInt>() == nullptr || each.as<ir::SymInt>()->is_constant();
  });
  if (!is_known) {
    if (shape.empty() && !wanted) return operators.tensor_of(data, call);
    operators.note_missing(call.name, "elements that are free dims", call);
    return Value{Lost()};
  }
  Tensor made(own, shape);
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    own == DType::kFloat32 ? made.set_element(at, real_of(elements[i]))
                           : made.set_element_int(at, whole_of(elements[i]));
  }
  const Value tensor = operators.constant(std::move(made), call);
  if (!wanted) return tensor;
  Call cast = call;
  cast.name = "aten.to";
  cast.arguments = {tensor, integer(*wanted)};
  cast.keywords.clear();
  return operators.call(cast);
}

/// What moves a tensor to a device alone moves nothing here.
Result to_device(Operators&, const Call& call) {
  const bool is_move =
      call.arguments.size() >= 2 && call.arguments[0].is_tensor() &&
      (call.arguments[1].as<std::string>() != nullptr || call.arguments[1].is_none()) &&
      (call.arguments.size() == 2 || call.arguments[2].is_none() || call.arguments[2].as<bool>() != nullptr);
  return is_move ? Result(call.arguments[0]) : std::nullopt;
}

// ---- of numbers

Result is_same(Operators&, const Call& call) {
  const Value &a = argument(call, 0), &b = argument(call, 1);
  return Value{a.is_none() && b.is_none()};
}
Result is_other(Operators&, const Call& call) {
  const Value &a = argument(call, 0), &b = argument(call, 1);
  return Value{!(a.is_none() && b.is_none())};
}

Result logical_not(Operators& operators, const Call& call) {
  const Value& value = argument(call, 0);
  if (value.is_tensor()) return std::nullopt;
  const Value truth = cast_number(operators, "bool", value, call);
  return Value{!*truth.as<bool>()};
}

bool are_plain(const Call& call) {
  return std::none_of(call.arguments.begin(), call.arguments.end(),
                      [](const Value& each) { return each.is_tensor() || each.is_lost(); });
}

Result truths(Operators& operators, const Call& call) {
  if (call.arguments.size() != 2 || !are_plain(call)) return std::nullopt;
  const Value a = cast_number(operators, "bool", call.arguments[0], call),
              b = cast_number(operators, "bool", call.arguments[1], call);
  const bool is_and = call.name == "aten.__and__", is_or = call.name == "aten.__or__";
  const bool x = *a.as<bool>(), y = *b.as<bool>();
  return Value{is_and ? x && y : is_or ? x || y : x != y};
}

struct Name {
  std::string_view torch;
  const char* number;
};
constexpr std::array<Name, 17> kBinary = {{{"aten.add", "_operator.add"},
                                           {"aten.sub", "_operator.sub"},
                                           {"aten.mul", "_operator.mul"},
                                           {"aten.div", "_operator.truediv"},
                                           {"aten.floordiv", "_operator.floordiv"},
                                           {"aten.remainder", "_operator.mod"},
                                           {"aten.pow", "_operator.pow"},
                                           {"aten.eq", "_operator.eq"},
                                           {"aten.ne", "_operator.ne"},
                                           {"aten.lt", "_operator.lt"},
                                           {"aten.le", "_operator.le"},
                                           {"aten.gt", "_operator.gt"},
                                           {"aten.ge", "_operator.ge"},
                                           {"prim.max", "torch.sym_max"},
                                           {"prim.min", "torch.sym_min"},
                                           {"aten.add_", "_operator.add"},
                                           {"aten.fmod", "_operator.mod"}}};

Result joined(Operators& operators, const Call& call) {
  const Value &a = call.arguments[0], &b = call.arguments[1];
  if (const auto* text = a.as<std::string>()) {
    if (b.as<std::string>() == nullptr) invalid_call(call, "a text and a " + kind_of(b));
    operators.spend(text->size() + b.as<std::string>()->size());
    return Value{*text + *b.as<std::string>()};
  }
  const Items *first = a.items(), *second = b.items();
  if (first == nullptr || second == nullptr) return std::nullopt;
  operators.spend(first->values.size() + second->values.size());
  std::vector<Value> values = first->values;
  values.insert(values.end(), second->values.begin(), second->values.end());
  // "+=" of a list changes it.
  if (call.name == "aten.add_") {
    a.items()->values = std::move(values);
    return a;
  }
  return list_of(std::move(values));
}

Result repeated(Operators& operators, const Call& call) {
  const Items* items = call.arguments[0].items();
  if (items == nullptr || call.arguments[1].as<ir::SymInt>() == nullptr) return std::nullopt;
  const int64_t times = whole_of(call.arguments[1]);
  if (times > 0 && items->values.size() > (uint64_t{1} << 22) / static_cast<uint64_t>(times))
    invalid_call(call, "a list of too many elements");
  operators.spend(items->values.size() * static_cast<uint64_t>(std::max<int64_t>(times, 0)));
  std::vector<Value> values;
  for (int64_t i = 0; i < times; ++i) values.insert(values.end(), items->values.begin(), items->values.end());
  return list_of(std::move(values));
}

Result binary(Operators& operators, const Call& call) {
  if (call.arguments.size() == 1 && call.name.starts_with("prim.")) {
    // The largest of a list.
    const Items& list = list_in(call);
    if (list.values.empty()) invalid_call(call, "of an empty list");
    Call next = call;
    next.arguments = {list.values[0], {}};
    for (size_t i = 1; i < list.values.size(); ++i) {
      next.arguments[1] = list.values[i];
      if (Result both = binary(operators, next)) next.arguments[0] = *both;
    }
    return next.arguments[0];
  }
  if (call.arguments.size() != 2 || !call.keywords.empty() || !are_plain(call)) return std::nullopt;
  const Value &a = call.arguments[0], &b = call.arguments[1];
  if (!a.is_number() || !b.is_number()) {
    if (call.name == "aten.add" || call.name == "aten.add_") return joined(operators, call);
    if (call.name == "aten.mul") return repeated(operators, call);
    if (call.name == "aten.eq") return Value{same_values(a, b)};
    if (call.name == "aten.ne") return Value{!same_values(a, b)};
    invalid_call(call, "of a " + kind_of(a) + " and a " + kind_of(b));
  }
  const auto* name =
      std::find_if(kBinary.begin(), kBinary.end(), [&](const Name& each) { return each.torch == call.name; });
  return operators.number(name->number, {a, b}, call);
}

Result unary(Operators& operators, const Call& call) {
  const Value& x = argument(call, 0);
  if (!x.is_number()) return std::nullopt;
  const std::string name = call.name.substr(5);
  if (name == "neg") return operators.number("_operator.neg", {x}, call);
  const bool is_rounding = name == "ceil" || name == "floor" || name == "trunc";
  if (is_rounding) return operators.number("math." + name, {x}, call);
  if (name == "round") return operators.number("_operator.round", {x}, call);
  if (name == "abs" && x.as<ir::SymInt>() != nullptr) return Value{max(whole_of(x), -whole_of(x))};
  const double value = real_of(x);
  if (name == "abs") return Value{std::fabs(value)};
  if (name == "sqrt") return Value{std::sqrt(value)};
  if (name == "exp") return Value{std::exp(value)};
  if (name == "log2") return Value{std::log2(value)};
  if (name == "log10") return Value{std::log10(value)};
  if (name == "sin") return Value{std::sin(value)};
  if (name == "cos") return Value{std::cos(value)};
  if (name == "tanh") return Value{std::tanh(value)};
  if (name == "log" && call.arguments.size() == 1) return Value{std::log(value)};
  return std::nullopt;
}

/// How many numbers from low to high, and the one of an index: what loops over ranges are printed with.
Result range_length(Operators&, const Call& call) {
  const Value &low = argument(call, 0), &high = argument(call, 1), &step = argument(call, 2);
  const int64_t by = whole_of(step);
  if (by == 0) invalid_call(call, "a step of 0");
  const ir::SymInt apart = by > 0 ? whole_of(high) - whole_of(low) : whole_of(low) - whole_of(high);
  const int64_t width = by > 0 ? by : -by;
  return Value{max(floordiv(apart + (width - 1), width), 0)};
}
Result derive_index(Operators&, const Call& call) {
  return Value{whole_of(argument(call, 1)) + whole_of(argument(call, 0)) * whole_of(argument(call, 2))};
}

struct Row {
  std::string_view name;
  Builtin function;
};
constexpr Row kRows[] = {
    {"aten.size", size_of},
    {"aten.dim", rank_of},
    {"aten.numel", elements_of},
    {"prim.dtype", dtype_of_tensor},
    {"aten.is_floating_point", is_real},
    {"prim.device", device_of},
    {"aten.device", device_of},
    {"prim.layout", zero},
    {"prim.is_cuda", never},
    {"prim.is_mkldnn", never},
    {"prim.is_quantized", never},
    {"prim.is_sparse", never},
    {"prim.is_meta", never},
    {"prim.is_nested", never},
    {"prim.is_mps", never},
    {"prim.is_xpu", never},
    {"prim.is_xla", never},
    {"prim.is_vulkan", never},
    {"prim.requires_grad", never},
    {"aten.is_complex", is_complex},
    {"aten.is_grad_enabled", never},
    {"aten.is_autocast_enabled", never},
    {"aten.is_scripting", never},
    {"aten.warn", nothing},
    {"aten.print", nothing},
    {"prim.Print", nothing},
    {"python.print", nothing},
    {"aten._assert", nothing},
    {"prim.data", itself},
    {"prim.unchecked_unwrap_optional", itself},
    {"aten._unwrap_optional", itself},
    {"python.unwrap_optional", itself},
    {"aten.requires_grad_", itself},
    {"aten.cpu", itself},
    {"prim.NumToTensor", number_to_tensor},
    {"aten.item", item},
    {"aten.tensor", tensor_from},
    {"aten.as_tensor", tensor_from},
    {"aten.to", to_device},
    {"aten.__range_length", range_length},
    {"aten.__derive_index", derive_index},
    {"aten.__is__", is_same},
    {"aten.__isnot__", is_other},
    {"aten.__not__", logical_not},
    {"aten.__and__", truths},
    {"aten.__or__", truths},
    {"aten.__xor__", truths},
    {"aten.neg", unary},
    {"aten.ceil", unary},
    {"aten.floor", unary},
    {"aten.round", unary},
    {"aten.trunc", unary},
    {"aten.abs", unary},
    {"prim.abs", unary},
    {"aten.sqrt", unary},
    {"aten.exp", unary},
    {"aten.log", unary},
    {"aten.log2", unary},
    {"aten.log10", unary},
    {"aten.sin", unary},
    {"aten.cos", unary},
    {"aten.tanh", unary},
};

Builtin function_of(const std::string& name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.function;
  for (const Name& row : kBinary)
    if (row.torch == name) return binary;
  return list_builtin(name);
}

bool is_any_lost(const Call& call) {
  return std::any_of(call.arguments.begin(), call.arguments.end(),
                     [](const Value& each) { return each.is_lost(); });
}

}  // namespace

bool has_builtin(const std::string& name) { return function_of(name) != nullptr; }

std::optional<Value> call_builtin(Operators& operators, const Call& call) {
  const Builtin function = function_of(call.name);
  if (function == nullptr) return std::nullopt;
  if (is_any_lost(call) && call.name != "aten.append") return Value{Lost()};
  return function(operators, call);
}

Value cast_number(Operators& operators, const std::string& to, const Value& given, const Call& call) {
  if (given.is_lost()) return given;
  const Value value = given.is_tensor() ? operators.number_in(given, call) : given;
  if (value.is_lost()) return value;
  if (const auto* text = value.as<std::string>()) {
    // float("inf")
    if (to == "float" && (*text == "inf" || *text == "-inf"))
      return {(*text == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity()};
    if (to == "float" && *text == "nan") return {std::numeric_limits<double>::quiet_NaN()};
    invalid_call(call, "of the text \"" + text->substr(0, 100) + "\"");
  }
  if (!value.is_number()) invalid_call(call, "of a " + kind_of(value));
  const auto* whole = value.as<ir::SymInt>();
  const bool is_free = value.as<ExtentReal>() != nullptr || (whole != nullptr && !whole->is_constant());
  if (to == "float" && is_free) return operators.number("torch.sym_float", {value}, call);
  if (to == "float") return {real_of(value)};
  if (to == "bool") return {value.is_real() ? real_of(value) != 0 : whole_of(value) != 0};
  if (!value.is_real()) return {whole_of(value)};
  if (is_free) return operators.number("math.trunc", {value}, call);
  const double real = std::trunc(real_of(value));
  if (!(std::fabs(real) < 0x1p62)) invalid_call(call, "a number that is no integer");
  return {ir::SymInt(static_cast<int64_t>(real))};
}

}  // namespace tensormill::frontend::pytorch::script
