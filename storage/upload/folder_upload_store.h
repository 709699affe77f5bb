/// Resumable uploads in a folder. README.md has the layout on disk. What is stored is also known in memory:
/// lists, sums and roots touch no disk. Errors and thread-safety: as UploadStore.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storage/blob/blob_store.h"
#include "storage/env/env.h"
#include "storage/upload/upload_store.h"

namespace tensormill::storage {

class FolderUploadStore final : public UploadStore {
public:
  /// Uses `root`/uploads and `root`/tmp, which the blob store has made. `now_ms` is the time since 1970.
  FolderUploadStore(Env& env, std::string root, BlobStore& blobs, UploadOptions options,
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
  /// Of unfinished uploads, and of chunks that are being written now.
  uint64_t stored_bytes() override;

private:
  /// One writer of one upload.
  class Turn;
  class Temporary;
  /// Where it ends by an error, the disk says afterwards what is stored.
  class Change;

  std::string folder_of(const std::string& id) const;
  /// What the disk has of it.
  Upload read(const std::string& id);
  /// What is known of it; the disk is read where that is not sure.
  Upload known(const std::string& id);
  void learn(const Upload& upload);
  std::optional<Upload> begun_with(const std::string& owner, const std::string& key);
  std::string temporary_path();
  void put_file(const std::string& id, const std::string& name, std::string_view text);
  void remove_files(const std::string& id);

  Env& env_;
  const std::string root_;
  BlobStore& blobs_;
  const UploadOptions options_;
  const std::function<int64_t()> now_ms_;
  std::mutex mutex_;
  std::set<std::string> busy_;
  std::map<std::string, std::optional<Upload>> uploads_;  ///< nothing: the disk has to be read
  std::atomic<uint64_t> writing_bytes_{0};
  uint64_t next_temporary_ = 0;
};

}  // namespace tensormill::storage
