#include "compiler/frontend/wire/checkpoint/sstable.h"

#include <cstdint>
#include <cstring>

#include "compiler/frontend/wire/checkpoint/crc32c.h"
#include "compiler/frontend/wire/work_budget.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::wire {

namespace {

constexpr size_t kFooterBytes = 48, kTrailerBytes = 5;
constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;
constexpr uint64_t kMaxBlockBytes = uint64_t{16} << 20;

struct Handle {
  uint64_t offset = 0, size = 0;
};

class Table {
public:
  explicit Table(std::string_view bytes) : bytes_(bytes) {}

  std::map<std::string, std::string> read() {
    if (bytes_.size() < kFooterBytes) fail(0, "a table has " + std::to_string(bytes_.size()) + " bytes");
    const size_t footer = bytes_.size() - kFooterBytes;
    uint64_t magic = 0;
    std::memcpy(&magic, bytes_.data() + bytes_.size() - 8, 8);
    if (magic != kTableMagic)
      fail(bytes_.size() - 8, "the magic number is not a table's: it is cut off, or none");
    std::string_view handles = bytes_.substr(footer, kFooterBytes - 8);
    handle(handles, footer);  // of the meta index, which says nothing about the entries
    const Handle index = handle(handles, footer);
    std::map<std::string, std::string> blocks;
    read_block(index, blocks);
    std::map<std::string, std::string> entries;
    for (const auto& [last_key, place] : blocks) {
      std::string_view text = place;
      read_block(handle(text, index.offset), entries);
    }
    return entries;
  }

private:
  [[noreturn]] static void fail(uint64_t at, const std::string& what) {
    throw Error(ErrorCode::kInvalidModel, "table of variables, at byte " + std::to_string(at) + ": " + what);
  }

  static uint64_t varint(std::string_view& text, uint64_t at) {
    uint64_t value = 0;
    for (size_t i = 0; i < 10 && i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      value |= uint64_t{byte & 0x7fu} << (7 * i);
      if (byte >= 0x80) continue;
      text.remove_prefix(i + 1);
      return value;
    }
    fail(at, "a number is cut off");
  }

  static Handle handle(std::string_view& text, uint64_t at) {
    const uint64_t offset = varint(text, at);
    return {offset, varint(text, at)};
  }

  std::string_view block(const Handle& place) const {
    if (place.size > kMaxBlockBytes || place.offset > bytes_.size() ||
        place.size + kTrailerBytes > bytes_.size() - place.offset)
      fail(place.offset,
           "a block of " + std::to_string(place.size) + " bytes passes the end, or is larger than 16 MiB");
    uint32_t crc = 0;
    std::memcpy(&crc, bytes_.data() + place.offset + place.size + 1, sizeof(crc));
    if (crc != masked_crc32c(bytes_.substr(place.offset, place.size + 1)))
      fail(place.offset, "a block has a wrong checksum");
    const auto packing = static_cast<unsigned char>(bytes_[place.offset + place.size]);
    if (packing != 0)
      throw Error(ErrorCode::kNotSupported,
                  "table of variables: a block is packed (kind " + std::to_string(packing) + ")");
    return bytes_.substr(place.offset, place.size);
  }

  void read_block(const Handle& place, std::map<std::string, std::string>& entries) {
    const std::string_view all = block(place);
    uint32_t restarts = 0;
    if (all.size() < 4) fail(place.offset, "a block of " + std::to_string(all.size()) + " bytes");
    std::memcpy(&restarts, all.data() + all.size() - 4, 4);
    if (restarts > (all.size() - 4) / 4) fail(place.offset, "more restarts than the block holds");
    std::string_view rest = all.substr(0, all.size() - 4 - uint64_t{restarts} * 4);
    std::string key;
    while (!rest.empty()) {
      const uint64_t at = place.offset + static_cast<uint64_t>(rest.data() - all.data());
      const uint64_t shared = varint(rest, at), unshared = varint(rest, at), value = varint(rest, at);
      if (shared > key.size() || unshared > rest.size() || value > rest.size() - unshared)
        fail(at, "an entry passes the end of its block");
      const std::string before = key;
      key = key.substr(0, shared) + std::string(rest.substr(0, unshared));
      entries_.spend(1);
      bytes_left_.spend(key.size() + value);
      if ((at != place.offset && key <= before) ||
          !entries.emplace(key, std::string(rest.substr(unshared, value))).second)
        fail(at, "keys are not sorted");
      rest.remove_prefix(unshared + value);
    }
  }

  std::string_view bytes_;
  WorkBudget entries_{"entries of a table", 1'000'000};
  WorkBudget bytes_left_{"bytes of keys and values", uint64_t{256} << 20};
};

}  // namespace

std::map<std::string, std::string> read_sstable(std::string_view bytes) { return Table(bytes).read(); }

}  // namespace tensormill::frontend::wire
