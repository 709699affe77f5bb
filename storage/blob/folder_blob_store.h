/// Blobs as files below a folder. README.md has the layout on disk. The folders are read once, when the store
/// is opened. Thread-safety: as BlobStore.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "storage/blob/blob_store.h"

namespace tensormill::storage {

class FolderBlobStore final : public BlobStore {
public:
  /// Uses `root`/blobs and `root`/tmp, made when absent. Unfinished writes of an earlier process are removed.
  /// One process at a time: the caller holds the store's lock.
  FolderBlobStore(Env& env, std::string root);

  std::unique_ptr<BlobWriter> writer(BlobOptions options = {}) override;
  std::shared_ptr<const Blob> open(const Digest& digest, const std::stop_token& stop = {}) override;
  bool exists(const Digest& digest) override;
  void verify(const Digest& digest) override;

private:
  class Writer;
  bool already_stored(const Digest& digest, BlobForm wanted) override;
  std::vector<Digest> remove_stored(std::span<const Digest> blobs) override;
  size_t group_of(std::span<const BlobInfo> blobs) const override;
  std::string shard_folder(const Digest& digest) const;
  std::string path_of(const Digest& digest, BlobForm form) const;
  std::optional<BlobForm> find(const Digest& digest);
  /// Fills the index from the folders.
  void read_folders();
  /// Size of a file; nothing when it is gone.
  std::optional<uint64_t> file_bytes(const std::string& path);
  void make_shard(const Digest& digest);
  std::shared_ptr<const Blob> load(const Digest& digest, BlobForm form, bool check,
                                   const std::stop_token& stop);

  const std::string root_;
  std::atomic<uint64_t> next_temporary_{0};
  std::mutex mutex_;
  std::set<std::string> durable_shards_;
};

}  // namespace tensormill::storage
