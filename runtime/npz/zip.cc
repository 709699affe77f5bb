#include "runtime/npz/zip.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"

namespace tensormill::npz {

namespace {

constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64LocatorSignature = 0x07064b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr size_t kEndSize = 22;
constexpr size_t kCentralSize = 46;
constexpr size_t kLocalSize = 30;

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::kInvalidNpz, "zip: " + what); }

/// Little-endian fields at checked positions.
class Bytes {
public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t size() const { return bytes_.size(); }
  std::span<const std::byte> slice(uint64_t offset, uint64_t length) const {
    if (offset > bytes_.size() || length > bytes_.size() - offset) {
      fail("range of " + std::to_string(length) + " bytes at " + std::to_string(offset) +
           " passes the end, " + std::to_string(bytes_.size()));
    }
    return bytes_.subspan(offset, length);
  }
  template <typename T>
  T get(uint64_t offset) const {
    T value;
    std::memcpy(&value, slice(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }

private:
  std::span<const std::byte> bytes_;
};

struct DirectoryPlace {
  uint64_t entries;
  uint64_t size;
  uint64_t offset;
};

DirectoryPlace find_directory(const Bytes& archive) {
  if (archive.size() < kEndSize) fail("not an archive: " + std::to_string(archive.size()) + " bytes");
  // The end record is last; a comment of at most 65,535 bytes may follow.
  const size_t lowest = archive.size() - std::min(archive.size(), kEndSize + 65535);
  size_t end = archive.size() - kEndSize;
  while (archive.get<uint32_t>(end) != kEndSignature ||
         archive.get<uint16_t>(end + 20) != archive.size() - end - kEndSize) {
    if (end == lowest) fail("no end of central directory: not an archive, or cut off");
    --end;
  }
  if (archive.get<uint16_t>(end + 4) != 0 || archive.get<uint16_t>(end + 6) != 0) fail("several volumes");
  DirectoryPlace place{archive.get<uint16_t>(end + 10), archive.get<uint32_t>(end + 12),
                       archive.get<uint32_t>(end + 16)};
  const bool is_zip64 = place.entries == 0xffff || place.size == 0xffffffff || place.offset == 0xffffffff;
  if (is_zip64 && end >= 20 && archive.get<uint32_t>(end - 20) == kEnd64LocatorSignature) {
    const uint64_t end64 = archive.get<uint64_t>(end - 12);
    if (archive.get<uint32_t>(end64) != kEnd64Signature) fail("zip64 end record is missing");
    archive.slice(end64, 56);
    place = {archive.get<uint64_t>(end64 + 32), archive.get<uint64_t>(end64 + 40),
             archive.get<uint64_t>(end64 + 48)};
  }
  archive.slice(place.offset, place.size);
  return place;
}

/// Replaces fields that are all ones by the zip64 extra field's, in its fixed order.
void apply_zip64(const Bytes& extra, uint64_t& size, uint64_t& compressed, uint64_t& offset) {
  uint64_t at = 0;
  while (at + 4 <= extra.size()) {
    const uint16_t tag = extra.get<uint16_t>(at);
    const uint16_t length = extra.get<uint16_t>(at + 2);
    const Bytes field(extra.slice(at + 4, length));
    if (tag == 1) {
      uint64_t next = 0;
      for (uint64_t* value : {&size, &compressed, &offset}) {
        if (*value != 0xffffffff) continue;
        *value = field.get<uint64_t>(next);
        next += 8;
      }
      return;
    }
    at += 4 + uint64_t{length};
  }
}

ZipMember read_member(const Bytes& archive, uint64_t at) {
  if (archive.get<uint32_t>(at) != kCentralSignature) fail("central directory entry is broken");
  archive.slice(at, kCentralSize);
  const uint16_t name_size = archive.get<uint16_t>(at + 28);
  const uint16_t extra_size = archive.get<uint16_t>(at + 30);
  ZipMember member;
  const auto name = archive.slice(at + kCentralSize, name_size);
  member.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  const uint16_t flags = archive.get<uint16_t>(at + 8);
  if ((flags & 0x2041) != 0) fail("member \"" + member.name + "\" is encrypted");
  const uint16_t method = archive.get<uint16_t>(at + 10);
  if (method != 0 && method != 8) {
    fail("member \"" + member.name + "\" has compression method " + std::to_string(method));
  }
  member.deflated = method == 8;
  member.crc = archive.get<uint32_t>(at + 16);
  uint64_t compressed = archive.get<uint32_t>(at + 20);
  member.size = archive.get<uint32_t>(at + 24);
  uint64_t offset = archive.get<uint32_t>(at + 42);
  apply_zip64(Bytes(archive.slice(at + kCentralSize + name_size, extra_size)), member.size, compressed,
              offset);
  archive.slice(offset, kLocalSize);
  if (archive.get<uint32_t>(offset) != kLocalSignature)
    fail("local header of \"" + member.name + "\" is broken");
  const uint64_t local_name = archive.get<uint16_t>(offset + 26);
  const uint64_t local_extra = archive.get<uint16_t>(offset + 28);
  const auto second = archive.slice(offset + kLocalSize, local_name);
  if (std::string_view(reinterpret_cast<const char*>(second.data()), second.size()) != member.name) {
    fail("local header of \"" + member.name + "\" has another name");
  }
  member.data = archive.slice(offset + kLocalSize + local_name + local_extra, compressed);
  if (!member.deflated && compressed != member.size) {
    fail("stored member \"" + member.name + "\" has two sizes, " + std::to_string(compressed) + " and " +
         std::to_string(member.size));
  }
  return member;
}

}  // namespace

std::vector<ZipMember> read_zip_directory(std::span<const std::byte> bytes, int64_t max_members) {
  const Bytes archive(bytes);
  const DirectoryPlace place = find_directory(archive);
  if (place.entries > static_cast<uint64_t>(max_members)) {
    throw Error(ErrorCode::kTooLarge, "archive has " + std::to_string(place.entries) + " members, at most " +
                                          std::to_string(max_members) + " are allowed");
  }
  std::vector<ZipMember> members;
  uint64_t at = place.offset;
  for (uint64_t i = 0; i < place.entries; ++i) {
    members.push_back(read_member(archive, at));
    at += kCentralSize + archive.get<uint16_t>(at + 28) + archive.get<uint16_t>(at + 30) +
          archive.get<uint16_t>(at + 32);
  }
  if (at != place.offset + place.size) fail("central directory has another size than announced");
  return members;
}

MemberStream::MemberStream(const ZipMember& member) : member_(member) {
  if (member_.deflated && ::inflateInit2(&inflater_, -MAX_WBITS) != Z_OK) {
    throw Error(ErrorCode::kMemoryBudget, "cannot set up the inflater");
  }
}

MemberStream::~MemberStream() {
  if (member_.deflated) ::inflateEnd(&inflater_);
}

size_t MemberStream::read_some(std::span<std::byte> target) {
  const size_t left = member_.data.size() - consumed_;
  if (!member_.deflated) {
    // In pieces that are still in the cache when their CRC is taken.
    constexpr size_t kPiece = 32 * 1024;
    const size_t count = std::min({left, target.size(), kPiece});
    if (count != 0) std::memcpy(target.data(), member_.data.data() + consumed_, count);
    consumed_ += count;
    return count;
  }
  if (ended_) return 0;
  constexpr size_t kChunk = 1u << 30;
  inflater_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(member_.data.data() + consumed_));
  inflater_.avail_in = static_cast<uInt>(std::min(left, kChunk));
  inflater_.next_out = reinterpret_cast<Bytef*>(target.data());
  inflater_.avail_out = static_cast<uInt>(std::min(target.size(), kChunk));
  const uInt in_before = inflater_.avail_in;
  const uInt out_before = inflater_.avail_out;
  const int status = ::inflate(&inflater_, Z_NO_FLUSH);
  if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
    fail("member \"" + member_.name + "\": deflate stream is broken");
  }
  ended_ = status == Z_STREAM_END;
  consumed_ += in_before - inflater_.avail_in;
  const size_t count = out_before - inflater_.avail_out;
  if (count == 0 && in_before == inflater_.avail_in) ended_ = true;  // cut off: no progress is possible
  return count;
}

void MemberStream::read(std::span<std::byte> target) {
  while (!target.empty()) {
    const size_t count = read_some(target);
    if (count == 0 && (ended_ || !member_.deflated)) {
      fail("member \"" + member_.name + "\" ends " + std::to_string(target.size()) + " bytes early");
    }
    crc_ = ::libdeflate_crc32(crc_, target.data(), count);
    produced_ += count;
    target = target.subspan(count);
  }
}

void MemberStream::finish() {
  std::byte extra{};
  while (!ended_ && (member_.deflated || consumed_ < member_.data.size())) {
    if (read_some({&extra, 1}) != 0) fail("member \"" + member_.name + "\" has bytes after its array");
  }
  if (produced_ != member_.size || consumed_ != member_.data.size()) {
    fail("member \"" + member_.name + "\" has another size than the directory says");
  }
  if (crc_ != member_.crc) fail("member \"" + member_.name + "\" has a wrong CRC");
}

}  // namespace tensormill::npz
