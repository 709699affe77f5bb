#include "tests/fuzz/tar_checksums.h"

#include <algorithm>
#include <cstdint>

namespace tensormill::fuzz {

namespace {

constexpr size_t kBlock = 512;
constexpr size_t kSizeAt = 124;
constexpr size_t kSizeDigits = 11;
constexpr size_t kChecksumAt = 148;

void set_checksum(std::string& archive, size_t at) {
  archive.replace(at + kChecksumAt, 8, "        ");
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += static_cast<uint8_t>(archive[at + i]);
  std::string digits = "000000";
  for (size_t i = digits.size(); i-- > 0; sum /= 8) digits[i] = static_cast<char>('0' + sum % 8);
  archive.replace(at + kChecksumAt, 8, digits + std::string("\0 ", 2));
}

}  // namespace

std::string with_tar_checksums(std::string_view archive) {
  std::string result(archive);
  for (size_t at = 0; at + kBlock <= result.size();) {
    const std::string_view header = std::string_view(result).substr(at, kBlock);
    if (header.find_first_not_of('\0') == std::string_view::npos) break;
    uint64_t size = 0;
    for (const char c : header.substr(kSizeAt, kSizeDigits)) {
      if (c < '0' || c > '7') break;
      size = size * 8 + static_cast<uint64_t>(c - '0');
    }
    set_checksum(result, at);
    at += kBlock + std::min<uint64_t>(size, result.size()) / kBlock * kBlock;
    if (size % kBlock != 0) at += kBlock;
  }
  return result;
}

}  // namespace tensormill::fuzz
