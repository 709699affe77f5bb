#include "server/services/store_quota.h"

#include "runtime/base/error.h"

namespace tensormill::server {

void StoreQuota::check(uint64_t more) {
  if (bytes_ == 0) return;
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - counted_ > std::chrono::seconds(1)) {
    used_ = 0;
    for (const storage::BlobInfo& blob : blobs_.list()) used_ += blob.stored_bytes;
    for (const storage::Upload& upload : uploads_.list()) used_ += upload.size;
    counted_ = now;
  }
  if (used_ <= bytes_ && more <= bytes_ - used_) return;
  throw Error(ErrorCode::kDiskFull, "the store holds " + std::to_string(used_) +
                                        " bytes and store.quota is " + std::to_string(bytes_) + ": " +
                                        std::to_string(more) + " more do not fit");
}

size_t QuotaBody::read(std::span<std::byte> buffer) {
  const size_t count = inner_.read(buffer);
  taken_ += count;
  quota_.check(taken_);
  return count;
}

}  // namespace tensormill::server
