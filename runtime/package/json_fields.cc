#include "runtime/package/json_fields.h"

#include <utility>

#include "runtime/base/error.h"

namespace tensormill::package {

void throw_invalid(const std::string& pointer, const std::string& what) {
  throw Error(ErrorCode::kInvalidPackage, (pointer.empty() ? "/" : pointer) + ": " + what, {{pointer, what}});
}

namespace {

int64_t checked_integer(const Json& value, const std::string& pointer, int64_t low, int64_t high) {
  if (!value.is_number_integer()) throw_invalid(pointer, "expected an integer");
  const bool too_large = value.is_number_unsigned() &&
                         value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const int64_t number = too_large ? std::numeric_limits<int64_t>::max() : value.get<int64_t>();
  if (too_large || number < low || number > high) {
    throw_invalid(pointer, "integer is " + value.dump() + ", expected " + std::to_string(low) + " to " +
                               std::to_string(high));
  }
  return number;
}

}  // namespace

JsonFields::JsonFields(const Json& object, std::string pointer)
    : object_(object), pointer_(std::move(pointer)) {
  if (!object_.is_object()) throw_invalid(pointer_, "expected an object");
}

const Json& JsonFields::member(std::string_view key) {
  const auto found = object_.find(std::string(key));
  if (found == object_.end()) throw_invalid(pointer_to(key), "member is missing");
  seen_.emplace(key);
  return *found;
}

int64_t JsonFields::integer(std::string_view key, int64_t low, int64_t high) {
  return checked_integer(member(key), pointer_to(key), low, high);
}

int64_t JsonFields::integer_or(std::string_view key, int64_t fallback, int64_t low, int64_t high) {
  return has(key) ? integer(key, low, high) : fallback;
}

std::string JsonFields::text(std::string_view key) {
  const Json& value = member(key);
  if (!value.is_string()) throw_invalid(pointer_to(key), "expected a string");
  return value.get<std::string>();
}

std::string JsonFields::text_or(std::string_view key, std::string fallback) {
  return has(key) ? text(key) : std::move(fallback);
}

DType JsonFields::dtype(std::string_view key) {
  const std::string name = text(key);
  const std::optional<DType> dtype = dtype_from_long_name(name);
  if (!dtype) throw_invalid(pointer_to(key), "unknown dtype \"" + name + "\"");
  return *dtype;
}

const Json& JsonFields::array(std::string_view key, int64_t max_size) {
  const Json& value = member(key);
  if (!value.is_array()) throw_invalid(pointer_to(key), "expected an array");
  if (value.size() > static_cast<size_t>(max_size)) {
    throw_invalid(pointer_to(key), "array has " + std::to_string(value.size()) +
                                       " elements, expected at most " + std::to_string(max_size));
  }
  return value;
}

const Json& JsonFields::object(std::string_view key) {
  const Json& value = member(key);
  if (!value.is_object()) throw_invalid(pointer_to(key), "expected an object");
  return value;
}

std::vector<int64_t> JsonFields::integers(std::string_view key, int64_t low, int64_t high, int64_t max_size) {
  std::vector<int64_t> result;
  const Json& values = array(key, max_size);
  for (size_t i = 0; i < values.size(); ++i) {
    result.push_back(checked_integer(values[i], pointer_to(key) + "/" + std::to_string(i), low, high));
  }
  return result;
}

std::vector<int64_t> JsonFields::integers_or_none(std::string_view key, int64_t low, int64_t high,
                                                  int64_t max_size) {
  return has(key) ? integers(key, low, high, max_size) : std::vector<int64_t>{};
}

std::vector<std::string> JsonFields::texts(std::string_view key, int64_t max_size) {
  std::vector<std::string> result;
  const Json& values = array(key, max_size);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].is_string()) {
      throw_invalid(pointer_to(key) + "/" + std::to_string(i), "expected a string");
    }
    result.push_back(values[i].get<std::string>());
  }
  return result;
}

std::vector<std::string> JsonFields::texts_or_none(std::string_view key, int64_t max_size) {
  return has(key) ? texts(key, max_size) : std::vector<std::string>{};
}

DimShape JsonFields::dims(std::string_view key, int64_t max_rank) {
  DimShape result;
  const Json& values = array(key, max_rank);
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string pointer = pointer_to(key) + "/" + std::to_string(i);
    if (values[i].is_string()) {
      result.emplace_back(values[i].get<std::string>());
    } else {
      result.emplace_back(checked_integer(values[i], pointer, 0, kMaxTensorBytes));
    }
  }
  return result;
}

void JsonFields::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (!seen_.contains(key)) throw_invalid(pointer_to(key), "unknown member");
  }
}

}  // namespace tensormill::package
