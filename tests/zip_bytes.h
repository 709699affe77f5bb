/// Archives of stored members, as bytes. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace tensormill::frontend
