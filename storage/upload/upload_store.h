/// Resumable uploads. README.md has the layout on disk. Promise: once append or finish has returned, its
/// effect survives kill -9 and a power cut; after one that threw for an error of the disk find() tells what
/// is kept. Errors: Error(kNotFound) for an upload that is not there, Error(kConflict) while another call
/// writes to it, Error(kDiskFull), Error(kIo). Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
};

/// Fills the buffer with the next bytes; 0 at the end.
using ByteReader = std::function<size_t(std::span<std::byte>)>;

class UploadStore {
public:
  /// Uses `root`/uploads and `root`/tmp, which the blob store has made. `now_ms` is the time since 1970.
  UploadStore(Env& env, std::string root, BlobStore& blobs, UploadOptions options,
              std::function<int64_t()> now_ms);

  Upload begin(const std::string& owner = "");
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

private:
  /// One writer of one upload.
  class Turn;
  class Temporary;

  std::string folder_of(const std::string& id) const;
  Upload read(const std::string& id);
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
  uint64_t next_temporary_ = 0;
};

}  // namespace tensormill::storage
