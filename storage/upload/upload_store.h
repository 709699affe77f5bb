/// Resumable uploads. README.md has the layout on disk. Promise: once append or finish has returned, its
/// effect survives kill -9 and a power cut; after one that threw for an error of the disk find() tells what
/// is kept. What is kept is also known in memory: lists, sums and roots touch no disk. Errors:
/// Error(kNotFound) for an upload that is not there, Error(kConflict) while another call writes to it,
/// Error(kDiskFull), Error(kIo). Thread-safety: all methods from many threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/digest.h"
#include "storage/blob/blob_store.h"
#include "storage/env/env.h"

namespace tensormill::storage {

struct UploadOptions {
  uint64_t max_bytes = uint64_t{16} << 30;  ///< of one upload; past it Error(kTooLarge)
  int max_uploads = 1024;                   ///< at once; past it Error(kUnavailable)
  std::chrono::milliseconds lifetime{std::chrono::hours(24)};
};

struct Upload {
  std::string id;
  uint64_t size = 0;  ///< bytes that are kept; of a finished one 0
  int64_t created_ms = 0;
  std::optional<Digest> blob;  ///< of a finished one
  uint64_t blob_bytes = 0;     ///< of a finished one: how many bytes its chunks had
  std::string owner;           ///< who began it; may be ""
  std::string key;             ///< of the request that began it; may be ""
};

/// Sums over all uploads.
struct UploadUsage {
  uint64_t uploads = 0;
  uint64_t bytes = 0;  ///< of unfinished ones; those of finished ones are blobs
};

/// Fills the buffer with the next bytes; 0 at the end.
using ByteReader = std::function<size_t(std::span<std::byte>)>;

class UploadStore {
public:
  /// Uses `root`/uploads and `root`/tmp, which the blob store has made. `now_ms` is the time since 1970.
  UploadStore(Env& env, std::string root, BlobStore& blobs, UploadOptions options,
              std::function<int64_t()> now_ms);

  /// With a key: the upload that the owner began with it, if there is one, so that a request which is sent
  /// again begins no other.
  Upload begin(const std::string& owner = "", const std::string& key = "");
  Upload find(const std::string& id);
  /// By id.
  std::vector<Upload> list();
  /// Keeps the bytes of `next` as one chunk. Throws Error(kRangeNotSatisfiable) unless `offset`, when given,
  /// is the upload's size, Error(kConflict) for a finished one, and what `next` throws.
  Upload append(const std::string& id, std::optional<uint64_t> offset, const ByteReader& next);
  /// The chunks become one blob, which is a root until the upload goes. Throws Error(kDigestMismatch) when it
  /// has another digest; then all is kept, to be tried again. Finishing twice is no error.
  Digest finish(const std::string& id, const Digest& expected);
  /// False when it was not there.
  bool remove(const std::string& id);
  /// Removes those that are older than the lifetime; returns how many.
  int expire();
  /// Blobs of finished uploads, sorted.
  std::vector<Digest> roots();
  UploadUsage usage();
  /// Bytes on disk that are no blobs: of unfinished uploads, and of chunks that are being written now.
  uint64_t stored_bytes();

private:
  /// One writer of one upload.
  class Turn;
  class Temporary;
  /// Where it ends by an error, the disk tells afterwards what is kept.
  class Change;

  std::string folder_of(const std::string& id) const;
  /// What the disk has of it.
  Upload read(const std::string& id);
  /// What is known of it; the disk is asked where that is not sure.
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
  std::map<std::string, std::optional<Upload>> uploads_;  ///< nothing: the disk has to be asked
  std::atomic<uint64_t> writing_bytes_{0};
  uint64_t next_temporary_ = 0;
};

}  // namespace tensormill::storage
