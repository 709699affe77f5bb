#include "api/schema/reader.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/json.h"

namespace tensormill::schema {
namespace {

std::string expected(std::string_view what, const Json& value) {
  return "is " + std::string(value.is_null() ? "null" : value.type_name()) + ", expected " +
         std::string(what);
}

/// Reads an array with `read` for each element; a problem and nothing unless all fit.
template <typename T, typename Read>
std::optional<std::vector<T>> read_array(const Json& value, const std::string& pointer, Problems& problems,
                                         const Read& read) {
  if (!value.is_array()) {
    problems.add(pointer, expected("an array", value));
    return std::nullopt;
  }
  std::vector<T> elements;
  for (size_t i = 0; i < value.size(); ++i) {
    std::optional<T> element = read(value[i], pointer_to(pointer, std::to_string(i)), problems);
    if (element) elements.push_back(std::move(*element));
  }
  if (elements.size() != value.size()) return std::nullopt;
  return elements;
}

}  // namespace

void Problems::add(std::string pointer, std::string detail) {
  if (details_.size() == kMostShown) {
    ++more_;
    return;
  }
  details_.push_back({std::move(pointer), std::move(detail)});
}

void Problems::throw_if_any() const {
  if (details_.empty()) return;
  const ErrorDetail& first = details_.front();
  std::string message = (first.pointer.empty() ? "the body" : first.pointer) + " " + first.detail;
  const size_t others = details_.size() - 1 + more_;
  if (others > 0) message += " (and " + std::to_string(others) + " more)";
  throw Error(ErrorCode::kInvalidArgument, message, details_);
}

std::string pointer_to(std::string_view pointer, std::string_view member) {
  std::string result(pointer);
  result += '/';
  for (const char c : member) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

std::optional<int64_t> read_int(const Json& value, const std::string& pointer, int64_t low, int64_t high,
                                Problems& problems) {
  const std::string range = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  if (!value.is_number_integer()) {
    problems.add(pointer, expected(range, value));
    return std::nullopt;
  }
  const bool wraps = value.is_number_unsigned() &&
                     value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (wraps || value.get<int64_t>() < low || value.get<int64_t>() > high) {
    problems.add(pointer, "is " + value.dump() + ", expected " + range);
    return std::nullopt;
  }
  return value.get<int64_t>();
}

std::optional<double> read_number(const Json& value, const std::string& pointer, Problems& problems) {
  if (value.is_number() && std::isfinite(value.get<double>())) return value.get<double>();
  problems.add(pointer, expected("a number", value));
  return std::nullopt;
}

std::optional<std::string> read_string(const Json& value, const std::string& pointer, Problems& problems) {
  if (value.is_string()) return value.get<std::string>();
  problems.add(pointer, expected("a string", value));
  return std::nullopt;
}

ObjectReader::ObjectReader(const Json& value, std::string pointer, Problems& problems)
    : value_(value), pointer_(std::move(pointer)), problems_(problems) {
  if (!value.is_object()) problems.add(pointer_, expected("an object", value));
}

const Json* ObjectReader::find(std::string_view name) {
  known_.emplace(name);
  if (!value_.is_object()) return nullptr;
  const auto found = value_.find(std::string(name));
  return found == value_.end() ? nullptr : &*found;
}

void ObjectReader::required(std::string_view name, std::string& out) {
  const Json* value = find(name);
  if (value == nullptr) {
    if (value_.is_object()) problems_.add(pointer(name), "is missing");
    return;
  }
  if (auto text = read_string(*value, pointer(name), problems_)) {
    if (text->empty()) problems_.add(pointer(name), "is empty");
    out = std::move(*text);
  }
}

void ObjectReader::optional(std::string_view name, std::string& out) {
  if (const Json* value = find(name)) out = read_string(*value, pointer(name), problems_).value_or(out);
}

void ObjectReader::optional(std::string_view name, bool& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (value->is_boolean()) {
    out = value->get<bool>();
  } else {
    problems_.add(pointer(name), expected("true or false", *value));
  }
}

void ObjectReader::optional(std::string_view name, int& out, int low, int high) {
  const Json* value = find(name);
  if (value == nullptr) return;
  out = static_cast<int>(read_int(*value, pointer(name), low, high, problems_).value_or(out));
}

void ObjectReader::optional(std::string_view name, std::vector<std::string>& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (auto list = read_array<std::string>(*value, pointer(name), problems_, read_string))
    out = std::move(*list);
}

void ObjectReader::optional(std::string_view name, std::vector<double>& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (auto list = read_array<double>(*value, pointer(name), problems_, read_number)) out = std::move(*list);
}

void ObjectReader::nullable(std::string_view name, std::optional<std::string>& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  out.reset();
  if (!value->is_null()) out = read_string(*value, pointer(name), problems_);
}

void ObjectReader::nullable(std::string_view name, std::optional<int>& out, int low, int high) {
  const Json* value = find(name);
  if (value == nullptr) return;
  out.reset();
  if (value->is_null()) return;
  if (const auto number = read_int(*value, pointer(name), low, high, problems_))
    out = static_cast<int>(*number);
}

void ObjectReader::nullable(std::string_view name, std::optional<double>& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  out.reset();
  if (!value->is_null()) out = read_number(*value, pointer(name), problems_);
}

void ObjectReader::nullable(std::string_view name, std::optional<std::vector<std::string>>& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  out.reset();
  if (!value->is_null()) out = read_array<std::string>(*value, pointer(name), problems_, read_string);
}

void ObjectReader::choice(std::string_view name, std::string& out, const std::vector<std::string>& choices) {
  const Json* value = find(name);
  if (value == nullptr) return;
  const auto text = read_string(*value, pointer(name), problems_);
  if (!text) return;
  if (std::find(choices.begin(), choices.end(), *text) == choices.end()) {
    std::string list;
    for (const std::string& one : choices) list += (list.empty() ? "" : ", ") + one;
    problems_.add(pointer(name), "is \"" + *text + "\", expected one of " + list);
  }
  out = *text;
}

void ObjectReader::each_member(
    std::string_view name,
    const std::function<void(const std::string&, const Json&, const std::string&)>& each) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_object()) {
    problems_.add(pointer(name), expected("an object", *value));
    return;
  }
  for (const auto& [key, member] : value->items()) each(key, member, pointer_to(pointer(name), key));
}

void ObjectReader::finish() {
  if (!value_.is_object()) return;
  for (const auto& [key, member] : value_.items()) {
    if (!known_.contains(key)) problems_.add(pointer(key), "is not a known member");
  }
}

}  // namespace tensormill::schema
