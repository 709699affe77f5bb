/// Resumable uploads of which any process that shares the catalog can take the next chunk: rows name them,
/// and each chunk is a blob. Thread-safety and errors: as UploadStore; of two processes that append at the
/// same place one gets Error(kRangeNotSatisfiable).
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "storage/blob/blob_store.h"
#include "storage/catalog/shared_catalog.h"
#include "storage/upload/upload_store.h"

namespace tensormill::storage {

class SharedUploadStore final : public UploadStore {
public:
  /// `now_ms` is the time since 1970.
  SharedUploadStore(SharedCatalog& catalog, BlobStore& blobs, UploadOptions options,
                    std::function<int64_t()> now_ms);

  Upload begin(const std::string& owner = "", const std::string& key = "") override;
  Upload find(const std::string& id) override;
  std::vector<Upload> list() override;
  Upload append(const std::string& id, std::optional<uint64_t> offset, const ByteReader& next) override;
  Digest finish(const std::string& id, const Digest& expected) override;
  bool remove(const std::string& id) override;
  int expire() override;
  std::vector<Digest> roots() override;
  UploadUsage usage() override;
  /// 0: chunks are blobs.
  uint64_t stored_bytes() override { return 0; }

private:
  class Turn;
  UploadRow require(const std::string& id);
  Digest join(const std::vector<ChunkRow>& chunks, const Digest& expected);

  SharedCatalog& catalog_;
  BlobStore& blobs_;
  const UploadOptions options_;
  const std::function<int64_t()> now_ms_;
  std::mutex mutex_;
  std::set<std::string> busy_;
};

}  // namespace tensormill::storage
