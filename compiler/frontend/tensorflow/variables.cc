#include <array>
#include <cstdio>

#include "compiler/frontend/tensorflow/graph_proto.h"
#include "compiler/frontend/wire/checkpoint/crc32c.h"
#include "compiler/frontend/wire/checkpoint/sstable.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::tensorflow {

namespace {

using wire::WireReader;

constexpr int64_t kMaxShards = 100'000;

struct BundleEntry {
  DataType dtype = DataType::kInvalid;
  TensorShape shape;
  int64_t shard = 0, offset = 0, size = 0;
  uint32_t crc = 0;
  bool is_sliced = false;
};

uint32_t fixed32(WireReader& reader, const char* what) {
  return std::bit_cast<uint32_t>(reader.fixed_float(what));
}

BundleEntry read_entry(std::string_view bytes) {
  BundleEntry to;
  WireReader reader(bytes, bytes.data(), 0);
  while (const int field = reader.next()) {
    if (field == 1) to.dtype = static_cast<DataType>(reader.int32("dtype"));
    if (field == 2) to.shape = GraphProtoReader().shape(reader.message("shape"));
    if (field == 3) to.shard = reader.int64("shard");
    if (field == 4) to.offset = reader.int64("offset");
    if (field == 5) to.size = reader.int64("size");
    if (field == 6) to.crc = fixed32(reader, "crc32c");
    if (field == 7) to.is_sliced = true;
  }
  return to;
}

/// The number of shards; what is not little endian is refused.
int64_t read_header(std::string_view bytes) {
  int64_t shards = 1;
  WireReader reader(bytes, bytes.data(), 0);
  while (const int field = reader.next()) {
    if (field == 1) shards = reader.int64("num_shards");
    if (field == 2 && reader.varint("endianness") != 0)
      throw Error(ErrorCode::kNotSupported, "variables are big endian");
  }
  if (shards < 0 || shards > kMaxShards) reader.fail(std::to_string(shards) + " shards");
  return shards;
}

/// The checksum of strings is one of their lengths, as numbers of 32 bits, of the checksum that stands behind
/// these, and of the bytes.
bool has_checksum(const std::vector<std::string_view>& texts, uint32_t expected) {
  std::string lengths;
  for (const std::string_view text : texts) {
    const auto length = static_cast<uint32_t>(text.size());
    lengths.append(reinterpret_cast<const char*>(&length), sizeof(length));
  }
  const uint32_t of_lengths = wire::masked_crc32c(lengths);
  lengths.append(reinterpret_cast<const char*>(&of_lengths), sizeof(of_lengths));
  for (const std::string_view text : texts) lengths.append(text);
  return wire::masked_crc32c(lengths) == expected;
}

class VariableReader {
public:
  VariableReader(const ModelFiles& files, std::string prefix) : files_(files), prefix_(std::move(prefix)) {}

  std::map<std::string, Variable> read() {
    const auto index = files_(prefix_ + ".index");
    if (!index) throw Error(ErrorCode::kInvalidModel, "there is no file " + prefix_ + ".index");
    std::map<std::string, Variable> variables;
    try {
      const std::map<std::string, std::string> entries = wire::read_sstable(*index);
      const auto header = entries.find("");
      if (header == entries.end()) throw Error(ErrorCode::kInvalidModel, "the table has no header");
      shards_ = read_header(header->second);
      for (const auto& [key, value] : entries) {
        if (key.empty()) continue;
        try {
          add(key, read_entry(value), variables);
        } catch (Error& error) {
          error.add_context("variable \"" + key.substr(0, 200) + "\"");
          throw;
        }
      }
    } catch (Error& error) {
      error.add_context(prefix_ + ".index");
      throw;
    }
    return variables;
  }

private:
  void add(const std::string& key, const BundleEntry& entry, std::map<std::string, Variable>& variables) {
    // The pieces of a partitioned variable have keys of their own, which are no names.
    if (entry.is_sliced) throw Error(ErrorCode::kNotSupported, "it is partitioned");
    Variable to;
    to.dtype = entry.dtype;
    to.shape = entry.shape.dims;
    if (entry.shard < 0 || entry.shard >= shards_)
      throw Error(ErrorCode::kInvalidModel,
                  "shard " + std::to_string(entry.shard) + " of " + std::to_string(shards_));
    const std::string_view shard = shard_bytes(entry.shard);
    if (entry.offset < 0 || entry.size < 0 || static_cast<uint64_t>(entry.offset) > shard.size() ||
        static_cast<uint64_t>(entry.size) > shard.size() - static_cast<uint64_t>(entry.offset))
      throw Error(ErrorCode::kInvalidModel, std::to_string(entry.size) + " bytes at " +
                                                std::to_string(entry.offset) + " pass the end of its file, " +
                                                std::to_string(shard.size()));
    to.data = shard.substr(static_cast<size_t>(entry.offset), static_cast<size_t>(entry.size));
    checked_.spend(to.data.size());
    uint64_t bytes = static_cast<uint64_t>(type_bytes(to.dtype));
    for (const int64_t dim : to.shape)
      if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
        throw Error(ErrorCode::kInvalidModel, "its shape has a free dim, or more elements than there can be");
    if (type_bytes(to.dtype) > 0) {
      if (bytes != to.data.size())
        throw Error(ErrorCode::kInvalidModel, std::to_string(to.data.size()) +
                                                  " bytes, its shape and type say " + std::to_string(bytes));
      if (wire::masked_crc32c(to.data) != entry.crc)
        throw Error(ErrorCode::kInvalidModel, "its bytes have another checksum than the index says");
    }
    if (to.dtype == DataType::kString) {
      uint64_t count = 1;
      for (const int64_t dim : to.shape)
        if (__builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count)) count = UINT64_MAX;
      if (!has_checksum(variable_texts(to.data, count), entry.crc))
        throw Error(ErrorCode::kInvalidModel, "its strings have another checksum than the index says");
    }
    variables.emplace(key, std::move(to));
  }

  std::string_view shard_bytes(int64_t shard) {
    const auto known = files_read_.find(shard);
    if (known != files_read_.end()) return known->second;
    std::array<char, 64> suffix{};
    std::snprintf(suffix.data(), suffix.size(), ".data-%05d-of-%05d", static_cast<int>(shard),
                  static_cast<int>(shards_));
    const auto bytes = files_(prefix_ + suffix.data());
    if (!bytes) throw Error(ErrorCode::kInvalidModel, "there is no file " + prefix_ + suffix.data());
    all_bytes_ += bytes->size();
    checked_ = wire::WorkBudget("bytes of variables", 2 * all_bytes_ + (uint64_t{64} << 20));
    return files_read_[shard] = *bytes;
  }

  const ModelFiles& files_;
  std::string prefix_;
  int64_t shards_ = 0;
  uint64_t all_bytes_ = 0;
  std::map<int64_t, std::string_view> files_read_;
  /// Entries may name the same bytes; their checksums are taken of a few times the files at most.
  wire::WorkBudget checked_{"bytes of variables", 0};
};

}  // namespace

std::vector<std::string_view> variable_texts(std::string_view data, uint64_t count) {
  const auto refuse = [](const char* what) { throw Error(ErrorCode::kInvalidModel, what); };
  // Each has a byte of its length, at least.
  if (count > data.size()) refuse("its strings have fewer bytes than there are strings");
  std::vector<uint64_t> lengths;
  uint64_t bytes = 0;
  while (lengths.size() < count) {
    uint64_t length = 0;
    for (int bit = 0;; bit += 7) {
      if (data.empty() || bit > 28) refuse("the length of a string is cut off or too long");
      const auto byte = static_cast<unsigned char>(data.front());
      data.remove_prefix(1);
      length |= uint64_t{byte & 0x7fu} << bit;
      if (byte < 0x80) break;
    }
    lengths.push_back(length);
    bytes += length;
  }
  if (data.size() < sizeof(uint32_t) || data.size() - sizeof(uint32_t) != bytes)
    refuse("its strings have other lengths than their bytes");
  data.remove_prefix(sizeof(uint32_t));
  std::vector<std::string_view> texts;
  for (const uint64_t length : lengths) {
    texts.push_back(data.substr(0, length));
    data.remove_prefix(length);
  }
  return texts;
}

std::map<std::string, Variable> read_variables(const ModelFiles& files, const std::string& prefix) {
  return VariableReader(files, prefix).read();
}

}  // namespace tensormill::frontend::tensorflow
