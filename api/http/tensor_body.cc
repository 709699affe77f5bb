#include "api/http/tensor_body.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/tensor.h"

namespace tensormill::http {
namespace {

/// Of a body so much is taken before its bytes come, then a quarter more than has come.
constexpr uint64_t kBelieved = uint64_t{1} << 20;
/// The room for a body of unknown length at first.
constexpr size_t kUnknown = size_t{16} << 10;
/// From here on a room is a mapping of its own, which grows without a copy, and of which only what bytes have
/// reached is memory.
constexpr size_t kMapped = size_t{1} << 20;

/// Room that grows, with a tensor's padding behind it.
class Room {
public:
  explicit Room(size_t size) : size_(size) {
    if (size < kMapped) {
      memory_ = allocate_aligned(size);
    } else {
      map(nullptr, 0);
    }
  }

  std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
  size_t size() const { return size_; }
  std::shared_ptr<void> owner() const { return memory_; }

  /// Keeps the first `filled` bytes.
  void grow(size_t size, size_t filled) {
    const size_t before = size_;
    size_ = size;
    if (before >= kMapped) return map(memory_.get(), before + kTensorPadding);
    const std::shared_ptr<void> smaller = std::move(memory_);
    if (size < kMapped) {
      memory_ = allocate_aligned(size);
    } else {
      map(nullptr, 0);
    }
    std::memcpy(memory_.get(), smaller.get(), filled);
  }

private:
  struct Unmap {
    size_t bytes;
    void operator()(void* memory) const { ::munmap(memory, bytes); }
  };

  /// A new mapping, or the one at `old` made larger.
  void map(void* old, size_t old_bytes) {
    const size_t bytes = size_ + kTensorPadding;
    void* memory = old == nullptr
                       ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                       : ::mremap(old, old_bytes, bytes, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED) {
      throw Error(ErrorCode::kMemoryBudget, "cannot allocate " + std::to_string(bytes) + " bytes");
    }
    // What was there has moved: its owner must not give it back.
    if (old != nullptr) std::get_deleter<Unmap>(memory_)->bytes = 0;
    memory_ = std::shared_ptr<void>(memory, Unmap{bytes});
  }

  std::shared_ptr<void> memory_;
  size_t size_;
};

/// A body on its way into memory.
class Growing {
public:
  /// `coming`: how many bytes there will be, where that is known.
  Growing(MemoryShare* memory, std::optional<uint64_t> coming)
      : memory_(memory), room_(static_cast<size_t>(coming.value_or(kUnknown))) {
    if (memory_ != nullptr && coming) memory_->check(*coming);
  }

  /// Where the next bytes go, which are taken; not empty unless all that are known to come are there.
  std::span<std::byte> next(uint64_t end) {
    if (filled_ == room_.size() && filled_ < end) room_.grow(2 * room_.size(), filled_);
    if (filled_ == taken_) {
      const uint64_t more = std::max<uint64_t>(filled_ / 4, kBelieved);
      take(std::min<uint64_t>(room_.size() - filled_, more));
    }
    return {room_.data() + filled_, static_cast<size_t>(taken_ - filled_)};
  }
  void add(size_t count) { filled_ += count; }
  size_t size() const { return filled_; }

  TensorBody finish() {
    if (memory_ != nullptr) memory_->give(taken_ - filled_);
    // What a tensor at the end may read past it is defined.
    std::memset(room_.data() + filled_, 0, std::min(room_.size() - filled_, kTensorPadding));
    return {room_.owner(), room_.data(), filled_};
  }

private:
  void take(uint64_t more) {
    if (memory_ != nullptr) memory_->take(more);
    taken_ += more;
  }

  MemoryShare* const memory_;
  Room room_;
  size_t filled_ = 0;
  uint64_t taken_ = 0;
};

TensorBody read_growing(BodySource& source, MemoryShare* memory, std::optional<uint64_t> coming,
                        uint64_t most) {
  if (coming) *coming = std::min(*coming, most);
  Growing body(memory, coming);
  const uint64_t end = coming.value_or(most);
  while (body.size() < end) {
    const std::span<std::byte> room = body.next(end);
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
