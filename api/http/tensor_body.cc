#include "api/http/tensor_body.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "runtime/base/tensor.h"

namespace tensormill::http {
namespace {

/// Taken before the first byte of a body of unknown length has come.
constexpr uint64_t kUnknown = uint64_t{16} << 10;
/// Of a body of known length so much is taken before its bytes come, then as much as has come.
constexpr uint64_t kBelieved = uint64_t{1} << 20;

/// A body on its way into memory.
class Growing {
public:
  /// `coming`: how many bytes there will be, where that is known. Pages that no byte has reached are no
  /// memory.
  Growing(MemoryShare* memory, std::optional<uint64_t> coming)
      : memory_(memory), is_known_(coming.has_value()) {
    if (memory_ != nullptr && coming) memory_->check(*coming);
    room_ = static_cast<size_t>(coming.value_or(kUnknown));
    if (!is_known_) take(room_);
    body_ = with_room(room_);
  }

  /// Where the next bytes go; not empty unless all that are known to come are there.
  std::span<std::byte> next() {
    if (is_known_) {
      const uint64_t wanted =
          std::min<uint64_t>(room_, std::max<uint64_t>(2 * uint64_t{body_.size}, kBelieved));
      if (body_.size == taken_) take(wanted - taken_);
      return {body_.data + body_.size, static_cast<size_t>(taken_) - body_.size};
    }
    if (body_.size == room_) grow();
    return {body_.data + body_.size, room_ - body_.size};
  }
  void add(size_t count) { body_.size += count; }
  size_t size() const { return body_.size; }

  TensorBody finish() {
    // What a tensor at the end may read past it is defined.
    std::memset(body_.data + body_.size, 0, std::min(room_ - body_.size, kTensorPadding));
    return std::move(body_);
  }

private:
  static TensorBody with_room(size_t room) {
    TensorBody body;
    body.owner = allocate_aligned(room);
    body.data = static_cast<std::byte*>(body.owner.get());
    return body;
  }

  void take(uint64_t more) {
    if (memory_ != nullptr) memory_->take(more);
    taken_ += more;
  }

  /// Both are there while the bytes are copied.
  void grow() {
    const size_t before = room_;
    take(2 * uint64_t{before});
    TensorBody larger = with_room(2 * before);
    std::memcpy(larger.data, body_.data, body_.size);
    larger.size = body_.size;
    body_ = std::move(larger);
    room_ = 2 * before;
    taken_ -= before;
    if (memory_ != nullptr) memory_->give(before);
  }

  MemoryShare* const memory_;
  const bool is_known_;
  TensorBody body_;
  size_t room_ = 0;
  uint64_t taken_ = 0;
};

TensorBody read_growing(BodySource& source, MemoryShare* memory, std::optional<uint64_t> coming,
                        uint64_t most) {
  if (coming) *coming = std::min(*coming, most);
  Growing body(memory, coming);
  const uint64_t end = coming.value_or(most);
  while (body.size() < end) {
    const std::span<std::byte> room = body.next();
    const size_t count =
        source.read(room.first(static_cast<size_t>(std::min<uint64_t>(room.size(), end - body.size()))));
    if (count == 0) break;
    body.add(count);
  }
  return body.finish();
}

}  // namespace

TensorBody read_tensor_body(BodySource& source, MemoryShare* memory, uint64_t taken) {
  std::optional<uint64_t> coming = source.length();
  if (coming) *coming -= std::min(*coming, taken);
  return read_growing(source, memory, coming, std::numeric_limits<uint64_t>::max());
}

TensorBody read_body_part(BodySource& source, MemoryShare* memory, uint64_t most) {
  return read_growing(source, memory, source.length(), most);
}

TensorBody read_tensor_body(BodySource& source, std::shared_ptr<void> room, size_t size) {
  TensorBody body;
  body.owner = std::move(room);
  body.data = static_cast<std::byte*>(body.owner.get());
  while (body.size < size) {
    const size_t count = source.read(std::span(body.data + body.size, size - body.size));
    if (count == 0) break;
    body.size += count;
  }
  return body;
}

std::string read_all(BodySource& body, MemoryShare* memory) {
  return std::string(read_tensor_body(body, memory).text());
}

}  // namespace tensormill::http
