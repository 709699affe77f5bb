#include "api/http/headers.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::http {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_safe(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string to_lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> members;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view member = trim(text.substr(0, comma));
    if (!member.empty()) members.push_back(member);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return members;
}

void Headers::add(std::string_view name, std::string_view value) {
  TM_CHECK(!name.empty() && is_safe(name) && is_safe(value), "unsafe bytes in a header field");
  fields_.emplace_back(name, trim(value));
}

void Headers::set(std::string_view name, std::string_view value) {
  remove(name);
  add(name, value);
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return equals_ignoring_case(field.first, name); });
}

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const Field& field : fields_) {
    if (equals_ignoring_case(field.first, name)) return field.second;
  }
  return std::nullopt;
}

std::vector<std::string_view> Headers::get_all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Field& field : fields_) {
    if (equals_ignoring_case(field.first, name)) values.push_back(field.second);
  }
  return values;
}

}  // namespace tensormill::http
