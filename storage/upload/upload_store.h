/// Resumable uploads: FolderUploadStore (storage/upload) keeps them on this machine's disk, SharedUploadStore
/// (storage/replica) where all processes that share a catalog find them. Promise: once append or finish has
/// returned, its effect survives kill -9 and a power cut; after one that threw for an error of the disk
/// find() tells what is kept. Errors: Error(kNotFound) for an upload that is not there, Error(kConflict)
/// while another call writes to it, Error(kDiskFull), Error(kIo). Thread-safety: all methods from many
/// threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/digest.h"

namespace tensormill::storage {

struct UploadOptions {
  uint64_t max_bytes = uint64_t{16} << 30;                     ///< of one upload; past it Error(kTooLarge)
  int max_uploads = 1024;                                      ///< at once; past it Error(kUnavailable)
  std::chrono::milliseconds lifetime{std::chrono::hours(24)};  ///< from Upload::since_ms
};

struct Upload {
  std::string id;
  uint64_t size = 0;  ///< bytes that are kept; of a finished one 0
  int64_t created_ms = 0;
  int64_t since_ms = 0;  ///< its lifetime begins: when it was begun, of a finished one when it was finished
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
  virtual ~UploadStore() = default;

  /// With a key: the upload that the owner began with it, if there is one, so that a request which is sent
  /// again begins no other.
  virtual Upload begin(const std::string& owner = "", const std::string& key = "") = 0;
  virtual Upload find(const std::string& id) = 0;
  /// By id.
  virtual std::vector<Upload> list() = 0;
  /// Keeps the bytes of `next` as one chunk. Throws Error(kRangeNotSatisfiable) unless `offset`, when given,
  /// is the upload's size, Error(kConflict) for a finished one, and what `next` throws.
  virtual Upload append(const std::string& id, std::optional<uint64_t> offset, const ByteReader& next) = 0;
  /// The chunks become one blob, which is a root until the upload goes. Throws Error(kDigestMismatch) when it
  /// has another digest; then all is kept, to be tried again. Finishing twice is no error.
  virtual Digest finish(const std::string& id, const Digest& expected) = 0;
  /// False when it was not there.
  virtual bool remove(const std::string& id) = 0;
  /// Removes those whose lifetime is over; returns how many.
  virtual int expire() = 0;
  /// Blobs that uploads need, sorted.
  virtual std::vector<Digest> roots() = 0;
  virtual UploadUsage usage() = 0;
  /// Bytes that are kept and are no blobs.
  virtual uint64_t stored_bytes() = 0;
};

/// The time in the first 48 bits of a UUIDv7, which names an upload.
int64_t upload_created_ms(const std::string& id);
/// Removes those of `store` that begin before `oldest_ms` and are not being written to; returns how many.
int expire_uploads(UploadStore& store, int64_t oldest_ms);

}  // namespace tensormill::storage
