/// Archives of members that are changed, as models. Thread-safety: pure functions.
#pragma once

#include <cctype>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/frontend/importer/importer.h"
#include "runtime/base/tensor.h"
#include "tests/zip_bytes.h"

namespace tensormill::frontend {

/// Where the words of a text stand: what is between two quotes, and numbers.
inline std::vector<std::pair<size_t, size_t>> words_of(const std::string& text) {
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_number = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (text[i] != '"' && !is_number) continue;
    size_t end = i + 1;
    if (is_number) {
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
      words.emplace_back(i, end - i);
    } else {
      while (end < text.size() && text[end] != '"') ++end;
      words.emplace_back(i + 1, end - i - 1);
    }
    i = end;
  }
  return words;
}

/// A few words in place of others of the same text, or numbers that are none of it.
inline std::string with_changed_words(const std::string& text,
                                      const std::vector<std::pair<size_t, size_t>>& words,
                                      std::mt19937& random) {
  static const std::vector<std::string> numbers = {"0", "1", "-1", "7", "1000000007", "9223372036854775807"};
  std::string copy = text;
  const size_t changes = 1 + random() % 3;
  for (size_t i = 0; i < changes; ++i) {
    const auto [at, size] = words[random() % words.size()];
    const auto [other, length] = words[random() % words.size()];
    const bool is_number = std::isdigit(static_cast<unsigned char>(text[at])) != 0;
    std::string word = text.substr(other, length);
    if (is_number) word = numbers[random() % numbers.size()];
    if (at + size > copy.size()) continue;
    copy.replace(at, size, word);
  }
  return copy;
}

/// Whatever the bytes are.
inline std::unique_ptr<Importer> importer_of_bytes(const std::string& bytes) {
  const std::shared_ptr<void> memory = allocate_aligned(bytes.size());
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  ModelSource source;
  source.model =
      MappedFile::part_of(memory, {static_cast<const std::byte*>(memory.get()), bytes.size()}, "model");
  return make_importer(std::move(source));
}

}  // namespace tensormill::frontend
