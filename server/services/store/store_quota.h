/// How much the store may hold, with what is being written to it at the moment.
/// Thread-safety: all methods from many threads.
#pragma once

#include <cstdint>

#include "api/http/body.h"
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
};

/// A body that is written to a file outside of the stores before it is stored. Borrows both.
class QuotaBody final : public http::BodySource {
public:
  QuotaBody(http::BodySource& inner, StoreQuota& quota) : inner_(inner), quota_(quota) {}
  size_t read(std::span<std::byte> buffer) override;
  std::optional<uint64_t> length() const override { return inner_.length(); }

private:
  http::BodySource& inner_;
  StoreQuota& quota_;
  uint64_t taken_ = 0;
};

}  // namespace tensormill::server
