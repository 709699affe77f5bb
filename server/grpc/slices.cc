#include "server/grpc/slices.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace tensormill::rpc {
namespace {

[[noreturn]] void broken(const std::string& what) {
  throw MessageError(grpc::StatusCode::INVALID_ARGUMENT, "the message " + what);
}

/// Front to back over pieces.
class Cursor {
public:
  explicit Cursor(const Pieces& pieces) : pieces_(pieces), left_(size_of(pieces)) { skip_empty(); }

  uint64_t left() const { return left_; }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = next();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    broken("has a number of more than ten bytes");
  }

  /// The next `size` bytes, each piece of them to `tell`.
  template <typename Tell>
  void take(uint64_t size, const Tell& tell) {
    if (size > left_) broken("ends within a field");
    left_ -= size;
    while (size > 0) {
      const grpc::Slice& piece = pieces_[piece_];
      const size_t count = static_cast<size_t>(std::min<uint64_t>(size, piece.size() - offset_));
      tell(piece, offset_, count);
      offset_ += count;
      size -= count;
      skip_empty();
    }
  }

private:
  uint8_t next() {
    uint8_t byte = 0;
    take(1, [&](const grpc::Slice& piece, size_t offset, size_t) { byte = piece.begin()[offset]; });
    return byte;
  }
  void skip_empty() {
    while (piece_ < pieces_.size() && offset_ == pieces_[piece_].size()) {
      ++piece_;
      offset_ = 0;
    }
  }

  const Pieces& pieces_;
  uint64_t left_;
  size_t piece_ = 0, offset_ = 0;
};

void append_varint(uint64_t value, std::string& text) {
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  text += static_cast<char>(value);
}

constexpr uint64_t kRawContents = 7;
constexpr int kVarint = 0, kFixed64 = 1, kSized = 2, kFixed32 = 5;

/// Copies the value of a field with wire type `type`.
void copy_value(Cursor& cursor, int type, std::string& head) {
  uint64_t size = 0;
  if (type == kVarint) return append_varint(cursor.varint(), head);
  if (type == kSized) {
    size = cursor.varint();
    append_varint(size, head);
  } else if (type == kFixed64 || type == kFixed32) {
    size = type == kFixed64 ? 8 : 4;
  } else {
    broken("has a field of the unknown wire type " + std::to_string(type));
  }
  if (head.size() + size > kMaxHead) {
    throw MessageError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                       "the message has more than " + std::to_string(kMaxHead) +
                           " bytes beside raw_input_contents: tensors that are large go there");
  }
  cursor.take(size, [&](const grpc::Slice& piece, size_t offset, size_t count) {
    head.append(reinterpret_cast<const char*>(piece.begin()) + offset, count);
  });
}

Pieces pieces_of(const grpc::ByteBuffer& message) {
  Pieces pieces;
  if (!message.Dump(&pieces).ok()) broken("cannot be read");
  return pieces;
}

}  // namespace

uint64_t size_of(const Pieces& pieces) {
  uint64_t size = 0;
  for (const grpc::Slice& piece : pieces) size += piece.size();
  return size;
}

SplitRequest split_request(const grpc::ByteBuffer& message) {
  const Pieces pieces = pieces_of(message);
  Cursor cursor(pieces);
  SplitRequest split;
  size_t fields = 0;
  while (cursor.left() > 0) {
    const uint64_t tag = cursor.varint();
    // A few of the fields are the request's own.
    if (++fields > 3 * kMaxTensors) broken("has more than " + std::to_string(3 * kMaxTensors) + " fields");
    if (tag >> 3 != kRawContents || (tag & 7) != kSized) {
      append_varint(tag, split.head);
      copy_value(cursor, static_cast<int>(tag & 7), split.head);
      continue;
    }
    if (split.raw.size() == kMaxTensors) broken("has more than " + std::to_string(kMaxTensors) + " tensors");
    Pieces& raw = split.raw.emplace_back();
    cursor.take(cursor.varint(), [&](const grpc::Slice& piece, size_t offset, size_t count) {
      raw.push_back(piece.sub(offset, offset + count));
    });
  }
  return split;
}

grpc::Slice slice_of(std::shared_ptr<const std::string> text, size_t begin, size_t size) {
  using Held = std::shared_ptr<const std::string>;
  char* data = const_cast<char*>(text->data()) + begin;  // gRPC does not write to it
  const auto release = [](void* held) { const std::unique_ptr<Held> all(static_cast<Held*>(held)); };
  return {data, size, release, std::make_unique<Held>(std::move(text)).release()};
}

grpc::Slice slice_of(std::string text) {
  const size_t size = text.size();
  return slice_of(std::make_shared<const std::string>(std::move(text)), 0, size);
}

std::string text_of(const grpc::ByteBuffer& message) {
  std::string text;
  for (const grpc::Slice& piece : pieces_of(message)) {
    text.append(reinterpret_cast<const char*>(piece.begin()), piece.size());
  }
  return text;
}

size_t PiecesBody::read(std::span<std::byte> buffer) {
  size_t done = 0;
  while (done < buffer.size() && piece_ < pieces_.size()) {
    grpc::Slice& piece = pieces_[piece_];
    const size_t count = std::min(buffer.size() - done, piece.size() - offset_);
    std::memcpy(buffer.data() + done, piece.begin() + offset_, count);
    done += count;
    offset_ += count;
    if (offset_ < piece.size()) break;
    piece = grpc::Slice();
    ++piece_;
    offset_ = 0;
  }
  return done;
}

}  // namespace tensormill::rpc
