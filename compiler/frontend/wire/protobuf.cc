#include "compiler/frontend/wire/protobuf.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "runtime/base/error.h"

namespace tensormill::frontend::wire {

namespace {

constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kLengthDelimited = 2;
constexpr int kFixed32 = 5;
constexpr size_t kMaxMessage = std::numeric_limits<int32_t>::max();

const uint8_t* unsigned_bytes(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

}  // namespace

WireReader::WireReader(std::string_view bytes, const char* base, int depth)
    : bytes_(bytes),
      base_(base),
      depth_(depth),
      stream_(unsigned_bytes(bytes), static_cast<int>(std::min(bytes.size(), kMaxMessage))) {
  if (bytes.size() > kMaxMessage)
    fail("a message of " + std::to_string(bytes.size()) + " bytes, protobuf allows 2 GiB");
  if (depth > kMaxNesting) fail("messages are nested deeper than " + std::to_string(kMaxNesting));
}

void WireReader::fail(const std::string& what) const {
  const int64_t offset = (bytes_.data() - base_) + stream_.CurrentPosition();
  throw Error(ErrorCode::kInvalidModel, "at byte " + std::to_string(offset) + ": " + what);
}

int WireReader::next() {
  if (!is_read_) skip();
  if (static_cast<size_t>(stream_.CurrentPosition()) == bytes_.size()) return 0;
  uint32_t tag = 0;
  if (!stream_.ReadVarint32(&tag) || tag >> 3 == 0) fail("malformed field tag");
  field_ = static_cast<int>(tag >> 3);
  wire_type_ = static_cast<int>(tag & 7);
  is_read_ = false;
  return field_;
}

void WireReader::expect(int wire_type, const char* what) {
  is_read_ = true;
  if (wire_type_ != wire_type) {
    fail(std::string(what) + " has wire type " + std::to_string(wire_type_) + ", expected " +
         std::to_string(wire_type));
  }
}

uint64_t WireReader::varint(const char* what) {
  expect(kVarint, what);
  uint64_t value = 0;
  if (!stream_.ReadVarint64(reinterpret_cast<google::protobuf::uint64*>(&value)))
    fail(std::string(what) + " is cut off");
  return value;
}

float WireReader::fixed_float(const char* what) {
  expect(kFixed32, what);
  uint32_t value = 0;
  if (!stream_.ReadLittleEndian32(&value)) fail(std::string(what) + " is cut off");
  return std::bit_cast<float>(value);
}

double WireReader::fixed_double(const char* what) {
  expect(kFixed64, what);
  google::protobuf::uint64 value = 0;
  if (!stream_.ReadLittleEndian64(&value)) fail(std::string(what) + " is cut off");
  return std::bit_cast<double>(static_cast<uint64_t>(value));
}

std::string_view WireReader::bytes(const char* what) {
  expect(kLengthDelimited, what);
  google::protobuf::uint64 size = 0;
  if (!stream_.ReadVarint64(&size)) fail(std::string(what) + " is cut off");
  const size_t at = static_cast<size_t>(stream_.CurrentPosition());
  if (size > bytes_.size() - at) {
    fail(std::string(what) + " has " + std::to_string(size) + " bytes, " +
         std::to_string(bytes_.size() - at) + " are left");
  }
  if (!stream_.Skip(static_cast<int>(size))) fail(std::string(what) + " is cut off");
  return bytes_.substr(at, size);
}

WireReader WireReader::message(const char* what) { return WireReader(bytes(what), base_, depth_ + 1); }

template <typename Read>
void WireReader::each_packed(int scalar_wire_type, const char* what, Read&& read) {
  if (wire_type_ != kLengthDelimited) {
    read(*this);
    return;
  }
  WireReader packed(bytes(what), base_, depth_);
  packed.wire_type_ = scalar_wire_type;
  while (static_cast<size_t>(packed.stream_.CurrentPosition()) != packed.bytes_.size()) read(packed);
}

void WireReader::append_varints(std::vector<int64_t>& values, const char* what) {
  each_packed(kVarint, what, [&](WireReader& reader) { values.push_back(reader.int64(what)); });
}

void WireReader::append_uint64s(std::vector<uint64_t>& values, const char* what) {
  each_packed(kVarint, what, [&](WireReader& reader) { values.push_back(reader.varint(what)); });
}

void WireReader::append_floats(std::vector<float>& values, const char* what) {
  each_packed(kFixed32, what, [&](WireReader& reader) { values.push_back(reader.fixed_float(what)); });
}

void WireReader::append_doubles(std::vector<double>& values, const char* what) {
  each_packed(kFixed64, what, [&](WireReader& reader) { values.push_back(reader.fixed_double(what)); });
}

void WireReader::skip() {
  switch (wire_type_) {
    case kVarint:
      varint("a field");
      return;
    case kFixed64:
      fixed_double("a field");
      return;
    case kLengthDelimited:
      bytes("a field");
      return;
    case kFixed32:
      fixed_float("a field");
      return;
    default:
      fail("field " + std::to_string(field_) + " has wire type " + std::to_string(wire_type_));
  }
}

}  // namespace tensormill::frontend::wire
