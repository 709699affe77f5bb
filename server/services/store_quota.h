/// How much the store may hold. What is stored is counted at most once a second, so that a check costs
/// nothing: the bound can be passed by what arrives in one. Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

#include "storage/blob/blob_store.h"
#include "storage/upload/upload_store.h"

namespace tensormill::server {

class StoreQuota {
public:
  /// `bytes` 0: no bound.
  StoreQuota(storage::BlobStore& blobs, storage::UploadStore& uploads, uint64_t bytes)
      : blobs_(blobs), uploads_(uploads), bytes_(bytes) {}
  /// Throws Error(kDiskFull) naming the setting when `more` bytes would be past it.
  void check(uint64_t more);
  uint64_t bytes() const { return bytes_; }

private:
  storage::BlobStore& blobs_;
  storage::UploadStore& uploads_;
  const uint64_t bytes_;
  std::mutex mutex_;
  uint64_t used_ = 0;
  std::chrono::steady_clock::time_point counted_{};
};

}  // namespace tensormill::server
