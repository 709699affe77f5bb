#include "server/services/store/store_quota.h"

#include "runtime/base/error.h"

namespace tensormill::server {

void StoreQuota::check(uint64_t more) {
  if (bytes_ == 0) return;
  const uint64_t used = blobs_.stored_bytes() + uploads_.stored_bytes();
  if (used <= bytes_ && more <= bytes_ - used) return;
  throw Error(ErrorCode::kDiskFull, "the store holds " + std::to_string(used) + " bytes and store.quota is " +
                                        std::to_string(bytes_) + ": " + std::to_string(more) +
                                        " more do not fit");
}

size_t QuotaBody::read(std::span<std::byte> buffer) {
  const size_t count = inner_.read(buffer);
  taken_ += count;
  quota_.check(taken_);
  return count;
}

}  // namespace tensormill::server
