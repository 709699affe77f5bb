/// How a worker elsewhere tells the end of a lease: one line of JSON, a line feed, and then, in this order
/// and with the lengths that it announces, the log, the texts of the compiler's stages, and the signed
/// archive of a package. One message publishes all or nothing, so that no server has to remember half of it.
///
///   {"state","result"?,"error"?,"resolved"?,"backoff_ms"?,"log_bytes","code_bytes","archive_bytes"}
///
/// state: "succeeded", "failed" (for good), "cancelled", "crashed" (its child did; counts as an attempt),
/// "gave_back" (shutdown, or something is unreachable; does not count). Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "api/http/body.h"
#include "runtime/base/json.h"
#include "runtime/base/memory_budget.h"
#include "server/services/store/package_signature.h"
#include "server/services/store/store_quota.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

/// Of the log of an attempt.
inline constexpr uint64_t kMaxWorkerLog = uint64_t{8} << 20;

struct WorkerEnd {
  std::string state;
  Json result;        ///< null where there is none
  std::string error;  ///< error_to_json, or ""
  Json resolved;      ///< null where it is as it was
  int64_t backoff_ms = 0;
  uint64_t log_bytes = 0;
  uint64_t code_bytes = 0;
  uint64_t archive_bytes = 0;
};

/// The line of an end, with its line feed.
std::string end_line(const WorkerEnd& end);
/// Reads the line and leaves `body` behind it. Throws Error(kInvalidRequest), Error(kTooLarge) for more
/// values than a result has. Its text and what is made of it take memory of `memory`, which may be null: as
/// MemoryShare::take.
WorkerEnd read_end(http::BodySource& body, MemoryShare* memory);

/// What the bytes behind the line are stored with.
struct WorkerEndPlace {
  storage::BlobStore& blobs;
  const TrustedKeys& trusted;
  StoreQuota& quota;
  const std::string& folder;  ///< on the store's disk
  uint64_t max_output_bytes = 0;
  MemoryShare* memory = nullptr;  ///< of what is read whole; null: without a share
};

/// What a succeeded attempt at `job` publishes: all blobs are durable then; the caller has a hold. What the
/// worker says is checked against the job: Error(kInvalidPackage) for a package of another model, target or
/// compiler, Error(kInvalidRequest), Error(kForeignCode).
storage::JobFinish read_result(const storage::JobRow& job, const WorkerEnd& end, http::BodySource& body,
                               const WorkerEndPlace& place);
/// The log, which comes first; nothing where it is empty.
std::optional<Digest> read_log(const WorkerEnd& end, http::BodySource& body, const WorkerEndPlace& place);

}  // namespace tensormill::server
