#include "runtime/package/tar_reader.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>

#include "runtime/base/error.h"

namespace tensormill::package {

namespace {

constexpr size_t kTarBlock = 512;

[[noreturn]] void fail(size_t offset, const std::string& what) {
  throw Error(ErrorCode::kInvalidPackage, "tar header at byte " + std::to_string(offset) + ": " + what);
}

/// Octal digits, ended by a space or NUL.
uint64_t octal(std::string_view field, size_t offset) {
  const size_t end = field.find_first_not_of("01234567");
  const std::string_view digits = field.substr(0, end);
  if (digits.empty() || digits.size() > 20) fail(offset, "number is broken");
  if (end != std::string_view::npos &&
      field.find_first_not_of(std::string_view(" \0", 2), end) != field.npos) {
    fail(offset, "number is broken");
  }
  uint64_t value = 0;
  for (char c : digits) value = value * 8 + static_cast<uint64_t>(c - '0');
  return value;
}

std::string_view text(std::string_view field) { return field.substr(0, field.find('\0')); }

uint64_t checksum(std::string_view header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) {
    // The checksum field itself counts as spaces.
    sum += i >= 148 && i < 156 ? uint64_t{' '} : static_cast<uint8_t>(header[i]);
  }
  return sum;
}

/// A pax record that says nothing: "<size> comment=" and spaces. Writers use it to align what follows.
void check_alignment_record(std::string_view record, size_t offset) {
  const std::string start = std::to_string(record.size()) + " comment=";
  const bool plain = record.size() > start.size() && record.starts_with(start) && record.back() == '\n' &&
                     record.find_first_not_of(' ', start.size()) == record.size() - 1;
  if (!plain) fail(offset, "extended header other than alignment");
}

bool all_zero(std::string_view bytes) { return bytes.find_first_not_of('\0') == std::string_view::npos; }

}  // namespace

std::vector<TarMember> read_tar(std::span<const std::byte> archive, size_t max_members) {
  const std::string_view bytes(reinterpret_cast<const char*>(archive.data()), archive.size());
  std::vector<TarMember> members;
  std::set<std::string> names;
  size_t at = 0;
  while (true) {
    if (bytes.size() - at < kTarBlock) fail(at, "archive is cut off");
    const std::string_view header = bytes.substr(at, kTarBlock);
    if (all_zero(header)) break;
    if (octal(header.substr(148, 8), at) != checksum(header)) fail(at, "checksum is wrong");
    if (header.substr(257, 5) != "ustar") fail(at, "not USTAR");
    const bool is_alignment = header[156] == 'x';
    if (header[156] != '0' && header[156] != '\0' && !is_alignment) fail(at, "not a regular file");
    TarMember member{std::string(text(header.substr(0, 100))), at + kTarBlock, 0};
    if (member.name.empty() || member.name.find('/') != std::string::npos ||
        !all_zero(header.substr(345, 155))) {
      fail(at, "name \"" + member.name + "\" is not allowed");
    }
    if (!is_alignment && !names.insert(member.name).second)
      fail(at, "name \"" + member.name + "\" is used twice");
    if (members.size() == max_members) fail(at, "more than " + std::to_string(max_members) + " members");
    const uint64_t size = octal(header.substr(124, 12), at);
    if (size > bytes.size() - member.offset) {
      fail(at, "member \"" + member.name + "\" has " + std::to_string(size) +
                   " bytes, the archive ends after " + std::to_string(bytes.size() - member.offset));
    }
    member.size = size;
    if (is_alignment) check_alignment_record(bytes.substr(member.offset, member.size), at);
    at = member.offset + (size + kTarBlock - 1) / kTarBlock * kTarBlock;
    if (at > bytes.size()) fail(member.offset, "archive is cut off");
    if (!is_alignment) members.push_back(std::move(member));
  }
  if (!all_zero(bytes.substr(at))) fail(at, "bytes after the end of the archive");
  if (bytes.size() - at < 2 * kTarBlock) fail(at, "end of the archive is cut off");
  return members;
}

}  // namespace tensormill::package
