#include "compiler/frontend/keras/names.h"

#include <algorithm>
#include <cctype>

namespace tensormill::frontend::keras {

namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string snake_case(std::string_view class_name) {
  std::string word;
  for (const char c : class_name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') word += c;
  // First before a capital that small letters follow, unless the letter before was one of such a word's end;
  // then between a small letter and a capital.
  std::string split;
  for (size_t i = 0; i < word.size();) {
    split += word[i++];
    if (i + 1 >= word.size() || !is_upper(word[i]) || !is_lower(word[i + 1])) continue;
    split += '_';
    split += word[i++];
    while (i < word.size() && is_lower(word[i])) split += word[i++];
  }
  std::string name;
  for (size_t i = 0; i < split.size(); ++i) {
    if (i > 0 && is_lower(split[i - 1]) && is_upper(split[i])) name += '_';
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(split[i])));
  }
  return name;
}

bool natural_less(std::string_view one, std::string_view other) {
  size_t i = 0, j = 0;
  while (i < one.size() && j < other.size()) {
    if (!is_digit(one[i]) || !is_digit(other[j])) {
      if (one[i] != other[j]) return one[i] < other[j];
      ++i;
      ++j;
      continue;
    }
    const auto run = [](std::string_view text, size_t at) {
      size_t end = at;
      while (end < text.size() && is_digit(text[end])) ++end;
      std::string_view digits = text.substr(at, end - at);
      digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
      return std::pair(digits, end);
    };
    const auto [first, first_end] = run(one, i);
    const auto [second, second_end] = run(other, j);
    if (first.size() != second.size()) return first.size() < second.size();
    if (first != second) return first < second;
    i = first_end;
    j = second_end;
  }
  return one.size() - i < other.size() - j;
}

}  // namespace tensormill::frontend::keras
