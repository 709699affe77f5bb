/// Blobs as objects of an S3-compatible store; README.md has the keys. What is opened is fetched whole into
/// the cache of this machine and verified there, so that a blob is a mapped file as it is with a folder.
/// Thread-safety: as BlobStore.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "storage/blob/blob_store.h"
#include "storage/s3/blob_cache.h"
#include "storage/s3/credentials.h"
#include "storage/s3/http_transport.h"
#include "storage/s3/s3_client.h"

namespace tensormill::storage {

struct S3StoreOptions {
  S3Options s3;
  CredentialOptions credentials;
  uint64_t cache_bytes = uint64_t{16} << 30;
  /// Whose blobs these are: replicas of one store have the same. A bucket's folder belongs to one store.
  std::string store_id;
};

class S3BlobStore final : public BlobStore {
public:
  /// The cache lies below `root`, which no other process uses. `index` is filled from a list of the bucket
  /// where it is empty. Throws as S3Client, and Error(kInUse) where the place belongs to another store.
  S3BlobStore(Env& env, std::string root, const S3StoreOptions& options,
              std::unique_ptr<HttpTransport> transport,
              std::unique_ptr<BlobIndex> index = std::make_unique<MemoryBlobIndex>());
  ~S3BlobStore() override;

  std::unique_ptr<BlobWriter> writer(BlobOptions options = {}) override;
  std::shared_ptr<const Blob> open(const Digest& digest, const std::stop_token& stop = {}) override;
  bool exists(const Digest& digest) override;
  void verify(const Digest& digest) override;

  /// Removes what is left of uploads that ended more than the grace ago; returns how many.
  uint64_t sweep_uploads();
  BlobCache& cache() { return cache_; }

private:
  class Writer;
  class Fetch;
  bool already_stored(const Digest& digest, BlobForm wanted) override;
  std::vector<Digest> remove_stored(std::span<const Digest> blobs) override;
  size_t group_of(std::span<const BlobInfo> blobs) const override;
  static std::string key_of(const Digest& digest, BlobForm form);
  std::string staging_key();
  /// The index's word; where it has none, the bucket is queried, as another replica may have put it there.
  std::optional<BlobInfo> find(const Digest& digest);
  std::optional<BlobInfo> ask(const Digest& digest);
  /// The bytes of the object, verified, in a temporary file; nothing when it is gone.
  std::optional<std::string> download(const BlobInfo& blob, const std::stop_token& stop);
  std::shared_ptr<const Blob> fetch(const BlobInfo& blob, const std::stop_token& stop);
  bool is_damaged(const Digest& digest);
  void set_damaged(const Digest& digest, bool damaged);
  void claim(const std::string& store_id);
  void read_bucket();

  const std::unique_ptr<HttpTransport> transport_;
  const std::unique_ptr<CredentialSource> credentials_;
  S3Client client_;
  BlobCache cache_;
  std::mutex mutex_;
  std::condition_variable fetched_;
  std::set<Digest> fetching_;  ///< each blob is fetched by one thread at a time
  std::set<Digest> damaged_;   ///< their objects were found to have other bytes; a commit replaces them
};

/// "s3://bucket/a/b" as bucket and prefix ("a/b/"). Throws Error(kUsage).
void parse_s3_url(const std::string& url, S3Options& options);

}  // namespace tensormill::storage
