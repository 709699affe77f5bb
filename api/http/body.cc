#include "api/http/body.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"

namespace tensormill::http {

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
