#include "api/http/body.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"

namespace tensormill::http {
namespace {

/// An announced length is believed up to a bound before its bytes come.
size_t first_room(const BodySource& body) {
  constexpr uint64_t kBelieved = uint64_t{1} << 20;
  constexpr uint64_t kUnknown = uint64_t{16} << 10;
  return static_cast<size_t>(std::min(body.length().value_or(kUnknown), kBelieved));
}

/// Reads to the end. A read costs a change of threads: it takes what there is, straight to where it stays:
/// `room(filled, size)` gives the bytes from `filled` on, with room for `size` in all. Returns the number.
template <typename Room>
size_t read_growing(BodySource& body, const Room& room) {
  const std::optional<uint64_t> length = body.length();
  size_t capacity = first_room(body);
  size_t size = 0;
  while (!length || size < *length) {
    if (size == capacity) capacity *= 2;
    const size_t count = body.read(room(size, capacity));
    if (count == 0) break;
    size += count;
  }
  return size;
}

}  // namespace

size_t BytesBody::read(std::span<std::byte> buffer) {
  const size_t count = std::min(buffer.size(), bytes_.size() - position_);
  std::memcpy(buffer.data(), bytes_.data() + position_, count);
  position_ += count;
  return count;
}

LimitedBody::LimitedBody(std::shared_ptr<BodySource> inner, uint64_t limit, std::string_view limit_name)
    : inner_(std::move(inner)), limit_(limit), limit_name_(limit_name) {
  if (inner_->length().value_or(0) > limit) {
    throw Error(ErrorCode::kTooLarge, "the body has " + std::to_string(*inner_->length()) + " bytes, " +
                                          limit_name_ + " is " + std::to_string(limit));
  }
}

size_t LimitedBody::read(std::span<std::byte> buffer) {
  const size_t count = inner_->read(buffer);
  taken_ += count;
  if (taken_ > limit_) {
    throw Error(ErrorCode::kTooLarge,
                "the body has more than " + std::to_string(limit_) + " bytes, which is " + limit_name_);
  }
  return count;
}

std::string read_all(BodySource& body) {
  std::string bytes(first_room(body), '\0');
  const size_t size = read_growing(body, [&](size_t filled, size_t room) {
    if (room > bytes.size()) bytes.resize(room);
    return std::as_writable_bytes(std::span(bytes).subspan(filled));
  });
  bytes.resize(size);
  return bytes;
}

SharedBytes read_all_shared(BodySource& body) {
  SharedBytes bytes;
  size_t capacity = 0;
  bytes.size = read_growing(body, [&](size_t filled, size_t room) {
    if (room > capacity) {
      auto larger = std::make_shared_for_overwrite<std::byte[]>(room);
      if (filled > 0) std::memcpy(larger.get(), bytes.data.get(), filled);
      bytes.data = std::move(larger);
      capacity = room;
    }
    return std::span(bytes.data.get() + filled, capacity - filled);
  });
  return bytes;
}

size_t BytesContent::read_at(uint64_t offset, std::span<std::byte> buffer) {
  if (offset >= bytes_.size()) return 0;
  const size_t count = std::min<size_t>(buffer.size(), bytes_.size() - offset);
  std::memcpy(buffer.data(), bytes_.data() + offset, count);
  return count;
}

size_t FileContent::read_at(uint64_t offset, std::span<std::byte> buffer) {
  if (offset >= length_) return 0;
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>(buffer.size(), length_ - offset));
  size_t done = 0;
  while (done < wanted) {
    const ssize_t count =
        ::pread(file_.get(), buffer.data() + done, wanted - done, static_cast<off_t>(start_ + offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno(errno, "read of a stored file");
    if (count == 0) {
      throw Error(ErrorCode::kCorrupt, "a stored file ends at byte " + std::to_string(offset + done) +
                                           ", expected " + std::to_string(length_));
    }
    done += static_cast<size_t>(count);
  }
  return done;
}

}  // namespace tensormill::http
