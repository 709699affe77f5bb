/// A blob as what a response carries. Thread-safety: as http::Content.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "api/http/body.h"
#include "storage/blob/blob.h"

namespace tensormill::server {

inline size_t copy_from_blob(const storage::Blob& blob, uint64_t offset, std::span<std::byte> buffer) {
  if (offset >= blob.size()) return 0;
  const auto count = static_cast<size_t>(std::min<uint64_t>(buffer.size(), blob.size() - offset));
  std::memcpy(buffer.data(), blob.bytes().data() + offset, count);
  return count;
}

/// Mapped bytes; the blob stays readable when it is removed.
class BlobContent final : public http::Content {
public:
  explicit BlobContent(std::shared_ptr<const storage::Blob> blob) : blob_(std::move(blob)) {}
  uint64_t size() const override { return blob_->size(); }
  size_t read_at(uint64_t offset, std::span<std::byte> buffer) override {
    return copy_from_blob(*blob_, offset, buffer);
  }

private:
  std::shared_ptr<const storage::Blob> blob_;
};

}  // namespace tensormill::server
