// Functions on lists, dictionaries and texts.
#include <algorithm>

#include "compiler/build/rows.h"
#include "compiler/frontend/pytorch/script/builtin_functions.h"
#include "compiler/frontend/pytorch/script/builtins.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch::script {

void invalid_call(const Call& call, const std::string& what) {
  throw Error(ErrorCode::kInvalidModel, call.name + ": " + what);
}

const Value& argument(const Call& call, size_t index) {
  if (index >= call.arguments.size()) invalid_call(call, "argument " + std::to_string(index) + " is missing");
  return call.arguments[index];
}

Items& list_in(const Call& call) {
  Items* items = argument(call, 0).items();
  if (items == nullptr) invalid_call(call, "a " + kind_of(argument(call, 0)) + " where a list has to be");
  return *items;
}

size_t place_in(const Value& index, size_t count) {
  const int64_t at = whole_of(index), own = static_cast<int64_t>(count);
  const int64_t place = at < 0 ? at + own : at;
  if (place < 0 || place >= own)
    throw Error(ErrorCode::kInvalidModel,
                "element " + std::to_string(at) + " of " + std::to_string(count) + " elements");
  return static_cast<size_t>(place);
}

namespace {

/// Lists within each other.
constexpr int kMostNestedLists = 16;

Dict& dict_in(const Call& call) {
  Dict* dict = argument(call, 0).dict();
  if (dict == nullptr)
    invalid_call(call, "a " + kind_of(argument(call, 0)) + " where a dictionary has to be");
  return *dict;
}

Result length(Operators& operators, const Call& call) {
  const Value& value = argument(call, 0);
  if (value.is_tensor()) {
    const ir::SymShape shape = operators.shape_of(value, call);
    if (shape.empty()) invalid_call(call, "of a tensor without dims");
    return Value{shape[0]};
  }
  if (const auto* text = value.as<std::string>()) return integer(static_cast<int64_t>(text->size()));
  if (const Dict* dict = value.dict()) return integer(static_cast<int64_t>(dict->entries.size()));
  return integer(static_cast<int64_t>(list_in(call).values.size()));
}

/// What is put into a list or a dictionary: what held itself would be looked at without an end.
const Value& held(Operators& operators, const Call& call, const void* holder, const Value& value,
                  int depth = 0) {
  operators.spend(1);
  if (depth > kMostNestedLists) invalid_call(call, "lists are nested too deeply");
  const Items* items = value.items();
  const Dict* dict = value.dict();
  if ((items != nullptr && items == holder) || (dict != nullptr && dict == holder))
    invalid_call(call, "a list holds itself");
  if (items != nullptr)
    for (const Value& each : items->values) held(operators, call, holder, each, depth + 1);
  if (dict != nullptr)
    for (const auto& [key, each] : dict->entries) held(operators, call, holder, each, depth + 1);
  return value;
}

Result append(Operators& operators, const Call& call) {
  Items& list = list_in(call);
  list.values.push_back(held(operators, call, &list, argument(call, 1)));
  return argument(call, 0);
}

Result extend(Operators& operators, const Call& call) {
  const Items* more = argument(call, 1).items();
  if (more == nullptr) invalid_call(call, "of a " + kind_of(call.arguments[1]));
  const std::vector<Value> values = more->values;
  Items& list = list_in(call);
  for (const Value& each : values) held(operators, call, &list, each);
  list.values.insert(list.values.end(), values.begin(), values.end());
  return Value();
}

Result insert(Operators& operators, const Call& call) {
  Items& list = list_in(call);
  operators.spend(list.values.size() + 1);
  const int64_t own = static_cast<int64_t>(list.values.size()), at = whole_of(argument(call, 1));
  const int64_t place = std::clamp<int64_t>(at < 0 ? at + own : at, 0, own);
  list.values.insert(list.values.begin() + place, held(operators, call, &list, argument(call, 2)));
  return Value();
}

Result pop(Operators& operators, const Call& call) {
  Items& list = list_in(call);
  operators.spend(list.values.size());
  const size_t at = place_in(call.arguments.size() > 1 ? call.arguments[1] : integer(-1), list.values.size());
  Value value = list.values[at];
  list.values.erase(list.values.begin() + static_cast<std::ptrdiff_t>(at));
  return value;
}

Result reverse(Operators& operators, const Call& call) {
  Items& list = list_in(call);
  operators.spend(list.values.size());
  std::reverse(list.values.begin(), list.values.end());
  return Value();
}

Result copied(Operators& operators, const Call& call) {
  if (argument(call, 0).items() == nullptr) return std::nullopt;
  operators.spend(list_in(call).values.size());
  return list_of(list_in(call).values);
}

/// list[start:end:step]
Result sliced(Operators& operators, const Call& call) {
  const Value& holder = argument(call, 0);
  const auto* text = holder.as<std::string>();
  if (holder.items() == nullptr && text == nullptr) return std::nullopt;
  const auto count = static_cast<int64_t>(text != nullptr ? text->size() : holder.items()->values.size());
  operators.spend(static_cast<uint64_t>(count));
  const auto number = [&](size_t index, int64_t otherwise) -> int64_t {
    if (index >= call.arguments.size() || call.arguments[index].is_none()) return otherwise;
    return whole_of(call.arguments[index]);
  };
  const auto within = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count); };
  const int64_t start = within(number(1, 0)), end = within(number(2, count)), step = number(3, 1);
  if (step < 1) invalid_call(call, "a step of " + std::to_string(step));
  if (text != nullptr)
    return Value{step == 1 && end > start
                     ? text->substr(static_cast<size_t>(start), static_cast<size_t>(end - start))
                     : std::string()};
  std::vector<Value> values;
  for (int64_t i = start; i < end; i += std::min(step, count))
    values.push_back(holder.items()->values[static_cast<size_t>(i)]);
  return list_of(std::move(values));
}

Result set_item(Operators& operators, const Call& call) {
  const Value& value = argument(call, 2);
  if (Dict* dict = argument(call, 0).dict()) {
    held(operators, call, dict, value);
    operators.spend(dict->entries.size());
    for (auto& [key, entry] : dict->entries) {
      if (!same_values(key, argument(call, 1))) continue;
      entry = value;
      return Value();
    }
    dict->entries.emplace_back(call.arguments[1], value);
    return Value();
  }
  Items& list = list_in(call);
  held(operators, call, &list, value);
  list.values[place_in(argument(call, 1), list.values.size())] = value;
  return Value();
}

Result new_dict(Operators&, const Call& call) {
  if (!call.arguments.empty()) return std::nullopt;
  return Value{std::make_shared<Dict>()};
}

Result keys(Operators& operators, const Call& call) {
  std::vector<Value> all;
  for (const auto& [key, value] : dict_in(call).entries) all.push_back(key);
  operators.spend(all.size());
  return list_of(std::move(all));
}

Result values(Operators& operators, const Call& call) {
  if (argument(call, 0).dict() == nullptr) return std::nullopt;
  std::vector<Value> all;
  for (const auto& [key, value] : dict_in(call).entries) all.push_back(value);
  operators.spend(all.size());
  return list_of(std::move(all));
}

Result contains(Operators& operators, const Call& call) {
  const Value& wanted = argument(call, 1);
  if (const Dict* dict = argument(call, 0).dict()) {
    operators.spend(dict->entries.size());
    return Value{std::any_of(dict->entries.begin(), dict->entries.end(),
                             [&](const auto& entry) { return same_values(entry.first, wanted); })};
  }
  if (const auto* text = argument(call, 0).as<std::string>())
    return Value{wanted.as<std::string>() != nullptr &&
                 text->find(*wanted.as<std::string>()) != std::string::npos};
  const Items& list = list_in(call);
  operators.spend(list.values.size());
  return Value{std::any_of(list.values.begin(), list.values.end(),
                           [&](const Value& each) { return same_values(each, wanted); })};
}

/// Of a list of numbers, as a tensor's is another operator.
Result sum_of(Operators& operators, const Call& call) {
  const Items* items = argument(call, 0).items();
  if (items == nullptr || call.arguments.size() != 1) return std::nullopt;
  Value total = integer(0);
  for (const Value& each : items->values) {
    if (!each.is_number()) invalid_call(call, "of a list with a " + kind_of(each));
    total = operators.number("_operator.add", {total, each}, call);
  }
  return total;
}

Result get_item(Operators&, const Call& call) { return element_of(argument(call, 0), argument(call, 1)); }

Result format_text(Operators& operators, const Call& call) {
  std::string text;
  for (const Value& each : call.arguments) text += (text.empty() ? "" : " ") + text_of(each).substr(0, 1000);
  operators.spend(text.size());
  return Value{text.substr(0, 4000)};
}

Result raised(Operators&, const Call& call) {
  const std::string what = call.arguments.empty() ? std::string() : text_of(call.arguments[0]).substr(0, 500);
  throw Error(ErrorCode::kInvalidModel, "the code raises an exception for these shapes: " + what);
}

struct ListRow {
  std::string_view name;
  Builtin function;
};
constexpr ListRow kListRows[] = {
    {"prim.RaiseException", raised},
    {"aten.len", length},
    {"aten.sum", sum_of},
    {"aten.append", append},
    {"aten.extend", extend},
    {"aten.insert", insert},
    {"aten.pop", pop},
    {"aten.reverse", reverse},
    {"aten.list", copied},
    {"aten.copy", copied},
    {"aten.slice", sliced},
    {"aten._set_item", set_item},
    {"aten.dict", new_dict},
    {"aten.keys", keys},
    {"aten.values", values},
    {"aten.__contains__", contains},
    {"aten.__getitem__", get_item},
    {"aten.format", format_text},
    {"aten.str", format_text},
    {"python.str", format_text},
};

}  // namespace

Builtin list_builtin(std::string_view name) {
  const ListRow* row = build::find_in(kListRows, &ListRow::name, name);
  return row == nullptr ? nullptr : row->function;
}

Value element_of(const Value& holder, const Value& index) {
  if (const Dict* dict = holder.dict()) {
    for (const auto& [key, value] : dict->entries)
      if (same_values(key, index)) return value;
    throw Error(ErrorCode::kInvalidModel, "a dictionary has no entry " + text_of(index).substr(0, 200));
  }
  if (const auto* text = holder.as<std::string>())
    return {std::string(1, (*text)[place_in(index, text->size())])};
  const Items* items = holder.items();
  if (items == nullptr) throw Error(ErrorCode::kInvalidModel, "an element of a " + kind_of(holder));
  return items->values[place_in(index, items->values.size())];
}

}  // namespace tensormill::frontend::pytorch::script
