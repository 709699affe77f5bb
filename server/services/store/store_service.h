/// Uploads, blobs and what operators ask about the store. Thread-safety: as services::StoreService.
#pragma once

#include <memory>
#include <string>

#include "api/services/store_service.h"
#include "server/services/deployments/free_memory.h"
#include "server/services/keys/caller_quota.h"
#include "server/services/store/blob_collector.h"
#include "server/services/store/store_quota.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"
#include "storage/upload/upload_store.h"

namespace tensormill::server {

class StoreServiceImpl final : public services::StoreService {
public:
  StoreServiceImpl(storage::BlobStore& blobs, storage::Catalog& catalog, storage::UploadStore& uploads,
                   BlobCollector& collector, StoreQuota& quota, CallerQuota& callers, std::string root)
      : blobs_(blobs),
        catalog_(catalog),
        uploads_(uploads),
        collector_(collector),
        quota_(quota),
        callers_(callers),
        root_(std::move(root)) {}

  services::UploadInfo begin_upload(const services::CallContext& context) override;
  services::UploadInfo get_upload(const std::string& id) override;
  services::UploadInfo append_upload(const std::string& id, const services::UploadChunk& chunk,
                                     http::BodySource& bytes, const services::CallContext& context) override;
  services::UploadInfo finish_upload(const std::string& id, const Digest& digest) override;
  void remove_upload(const std::string& id) override;
  std::shared_ptr<http::Content> blob(const std::string& id) override;
  services::StorageInfo storage() override;
  services::GcReport collect(bool dry_run) override;

private:
  storage::BlobStore& blobs_;
  storage::Catalog& catalog_;
  storage::UploadStore& uploads_;
  BlobCollector& collector_;
  StoreQuota& quota_;
  CallerQuota& callers_;
  const std::string root_;
  SeldomGiveBack free_memory_;
};

/// A blob's bytes, as they come in.
class BlobBody final : public http::BodySource {
public:
  explicit BlobBody(std::shared_ptr<const storage::Blob> blob) : blob_(std::move(blob)) {}
  size_t read(std::span<std::byte> buffer) override;
  std::optional<uint64_t> length() const override { return blob_->size(); }

private:
  std::shared_ptr<const storage::Blob> blob_;
  uint64_t position_ = 0;
};

}  // namespace tensormill::server
