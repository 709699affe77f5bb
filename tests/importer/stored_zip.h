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

namespace tensormill::frontend {

inline uint32_t zip_crc(std::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

inline void put_bytes(std::string& to, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
}

/// A zip of stored members.
inline std::string stored_zip(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string zip, directory;
  for (const auto& [name, data] : members) {
    std::string common;
    for (const uint64_t field : {20, 0, 0, 0, 0x21}) put_bytes(common, field, 2);
    put_bytes(common, zip_crc(data), 4);
    put_bytes(common, data.size(), 4);
    put_bytes(common, data.size(), 4);
    put_bytes(common, name.size(), 2);
    put_bytes(common, 0, 2);
    directory += std::string("PK\x01\x02", 4) + std::string("\x14\x00", 2) + common;
    for (const uint64_t field : {0, 0, 0}) put_bytes(directory, field, 2);
    put_bytes(directory, 0, 4);
    put_bytes(directory, zip.size(), 4);
    directory += name;
    zip += std::string("PK\x03\x04", 4) + common + name + data;
  }
  const size_t start = zip.size();
  zip += directory + std::string("PK\x05\x06", 4);
  for (const uint64_t field : {uint64_t{0}, uint64_t{0}, uint64_t{members.size()}, uint64_t{members.size()}})
    put_bytes(zip, field, 2);
  put_bytes(zip, directory.size(), 4);
  put_bytes(zip, start, 4);
  put_bytes(zip, 0, 2);
  return zip;
}

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
  static const std::vector<std::string> kNumbers = {"0", "1", "-1", "7", "1000000007", "9223372036854775807"};
  std::string copy = text;
  const size_t changes = 1 + random() % 3;
  for (size_t i = 0; i < changes; ++i) {
    const auto [at, size] = words[random() % words.size()];
    const auto [other, length] = words[random() % words.size()];
    const bool is_number = std::isdigit(static_cast<unsigned char>(text[at])) != 0;
    std::string word = text.substr(other, length);
    if (is_number) word = kNumbers[random() % kNumbers.size()];
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
