#include "compiler/frontend/pytorch/script/value.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch::script {

Value list_of(std::vector<Value> values) {
  return {std::make_shared<Items>(Items{false, nullptr, std::move(values)})};
}

Value tuple_of(std::vector<Value> values) {
  return {std::make_shared<Items>(Items{true, nullptr, std::move(values)})};
}

std::string kind_of(const Value& value) {
  if (const Items* items = value.items()) return items->is_tuple ? "tuple" : "list";
  if (value.dict() != nullptr) return "dictionary";
  if (value.is_none()) return "None";
  if (value.as<bool>() != nullptr) return "truth value";
  if (value.as<ir::SymInt>() != nullptr) return "integer";
  if (value.is_real()) return "real number";
  if (value.as<std::string>() != nullptr) return "text";
  if (value.as<ObjectRef>() != nullptr) return "module";
  if (value.as<FunctionRef>() != nullptr) return "function";
  return "tensor";
}

double real_of(const Value& value) {
  if (const auto* real = value.as<double>()) return *real;
  if (const auto* real = value.as<ExtentReal>()) return real->fixed();
  return static_cast<double>(int64_t{whole_of(value)});
}

ir::SymInt whole_of(const Value& value) {
  if (const auto* whole = value.as<ir::SymInt>()) return *whole;
  if (const auto* truth = value.as<bool>()) return int64_t{*truth};
  throw Error(ErrorCode::kInvalidModel, "a " + kind_of(value) + " where an integer has to be");
}

bool same_values(const Value& a, const Value& b) {
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (const auto* text = a.as<std::string>())
    return b.as<std::string>() != nullptr && *text == *b.as<std::string>();
  if (a.is_number() && b.is_number()) {
    if (a.is_real() || b.is_real()) return real_of(a) == real_of(b);
    return whole_of(a) == whole_of(b);
  }
  const Items *first = a.items(), *second = b.items();
  if (first == nullptr || second == nullptr)
    throw Error(ErrorCode::kInvalidModel, "a " + kind_of(a) + " is compared with a " + kind_of(b));
  return first->values.size() == second->values.size() &&
         std::equal(first->values.begin(), first->values.end(), second->values.begin(), same_values);
}

std::string text_of(const Value& value) {
  if (const auto* text = value.as<std::string>()) return *text;
  if (const auto* truth = value.as<bool>()) return *truth ? "True" : "False";
  if (const auto* whole = value.as<ir::SymInt>()) return to_string(*whole);
  if (const auto* real = value.as<double>()) return std::to_string(*real);
  const Items* items = value.items();
  if (items == nullptr || items->values.size() > 64) return kind_of(value);
  std::string text;
  for (const Value& each : items->values) {
    if (each.items() != nullptr) return kind_of(value);
    text += (text.empty() ? "" : ", ") + text_of(each);
  }
  return items->is_tuple ? "(" + text + ")" : "[" + text + "]";
}

std::string to_string(const Place& place) {
  return place.file == nullptr ? std::string("the code") : *place.file + ":" + std::to_string(place.line);
}

}  // namespace tensormill::frontend::pytorch::script
