/// The store as clients and operators see it: resumable uploads, blobs, what takes room, garbage collection.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http/body.h"
#include "api/services/common.h"
#include "runtime/base/digest.h"

namespace tensormill::services {

struct UploadInfo {
  std::string id;     ///< UUIDv7 text
  uint64_t size = 0;  ///< bytes that are kept; 0 of a finished one
  Timestamp created_at;
  std::optional<Digest> blob;  ///< of a finished one
};

struct UploadChunk {
  std::optional<uint64_t> offset;  ///< where it shall begin; nothing: at the end
  std::optional<uint64_t> length;  ///< as announced: Error(kInvalidRequest) for another one
};

/// What one caller has here.
struct CallerUse {
  std::string caller;
  int64_t live_jobs = 0;  ///< queued and running
  uint64_t bytes = 0;     ///< of models, packages and uploads
};

struct StorageInfo {
  uint64_t blobs = 0;
  uint64_t blob_bytes = 0;        ///< as stored
  uint64_t referenced_blobs = 0;  ///< that a row or an upload names
  uint64_t uploads = 0;
  uint64_t upload_bytes = 0;             ///< of unfinished ones
  uint64_t quota_bytes = 0;              ///< 0: none
  uint64_t free_bytes = 0;               ///< of the disk
  std::map<std::string, uint64_t> rows;  ///< "models", "packages", "deployments", "queued_jobs" …
  std::vector<CallerUse> callers;        ///< sorted by caller
};

struct GcReport {
  bool dry_run = false;
  uint64_t blobs = 0;  ///< removed, or that would be
  uint64_t bytes = 0;
  uint64_t packages = 0;                 ///< expired
  uint64_t uploads = 0;                  ///< expired
  std::map<std::string, uint64_t> held;  ///< blobs that stay, by why: "referenced", "being_published"
};

/// Uploads: Error(kNotFound), Error(kConflict) while another request writes to the same one. Thread-safety:
/// all methods from many threads.
class StoreService {
public:
  virtual ~StoreService() = default;
  /// Throws Error(kUnavailable) when there are too many, Error(kDiskFull) past the store's quota,
  /// Error(kQuotaExceeded) past the caller's.
  virtual UploadInfo begin_upload(const CallContext& context) = 0;
  virtual UploadInfo get_upload(const std::string& id) = 0;
  /// Streams `bytes` to disk. Throws Error(kRangeNotSatisfiable) when the chunk begins elsewhere than at the
  /// end of what is kept, Error(kTooLarge), Error(kDiskFull), Error(kQuotaExceeded).
  virtual UploadInfo append_upload(const std::string& id, const UploadChunk& chunk, http::BodySource& bytes,
                                   const CallContext& context) = 0;
  /// The chunks become a blob, kept for 24 h from the upload's begin unless something names it. Throws
  /// Error(kDigestMismatch); then the chunks stay.
  virtual UploadInfo finish_upload(const std::string& id, const Digest& digest) = 0;
  virtual void remove_upload(const std::string& id) = 0;

  /// Never null. Throws Error(kNotFound), Error(kCorrupt).
  virtual std::shared_ptr<http::Content> blob(const std::string& id) = 0;

  virtual StorageInfo storage() = 0;
  virtual GcReport collect(bool dry_run) = 0;
};

}  // namespace tensormill::services
