/// What processes that share one catalog tell each other: which of them are there, and what is true of one of
/// them alone elsewhere: which blobs there are and who holds or removes them, uploads, live logs, what each
/// has loaded. Every row that belongs to a process goes by that process' lease, whose clock is the catalog's.
/// Errors and thread-safety: as Catalog.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/digest.h"

namespace tensormill::storage {

/// A process that serves.
struct ReplicaRow {
  std::string id;              ///< of this run of the process: what it owns names it
  std::string name;            ///< the same for all runs from one folder
  std::string address;         ///< URL where other processes reach it; "" where none is known
  int64_t began_ms = 0;        ///< set by the catalog
  int64_t lease_until_ms = 0;  ///< set by the catalog
  bool is_live = false;        ///< set by the catalog: its lease is not over
};

/// What is known of a blob beside its bytes.
struct BlobRow {
  Digest digest;
  /// The number of its BlobForm; nothing while it is being stored for the first time, or was not to the end.
  std::optional<int> form = std::nullopt;
  uint64_t stored_bytes = 0;
};

/// Bytes of a live log that one row has at most.
inline constexpr size_t kLogRow = size_t{64} << 10;

struct BlobSums {
  uint64_t blobs = 0;
  uint64_t compressed = 0;
  uint64_t stored_bytes = 0;
};

/// An upload of which the chunks are blobs.
struct UploadRow {
  std::string id;
  std::string owner = {};
  std::string key = {};
  int64_t since_ms = 0;                       ///< as Upload::since_ms
  uint64_t size = 0;                          ///< of the chunks; set by the catalog
  std::optional<Digest> blob = std::nullopt;  ///< of a finished one
  uint64_t blob_bytes = 0;
};

struct ChunkRow {
  uint64_t begin = 0;
  uint64_t size = 0;
  Digest digest;
};

struct UploadSums {
  uint64_t uploads = 0;
  uint64_t bytes = 0;  ///< of chunks
};

/// What one replica has of one deployment.
struct ObservedRow {
  std::string deployment;
  std::string replica;       ///< its name
  int64_t revision = 0;      ///< of the deployment that it has seen
  std::string state = "{}";  ///< JSON that nobody here reads
  bool is_live = false;      ///< set by the catalog
};

class SharedCatalog {
public:
  virtual ~SharedCatalog() = default;

  /// The replica is there for `lease_ms`. Earlier runs of the same name are not any more: what they held is
  /// free, and the jobs that they ran are orphans.
  virtual void begin_replica(const ReplicaRow& replica, int64_t lease_ms) = 0;
  /// False when the replica is not there (any more).
  virtual bool renew_replica(const std::string& id, int64_t lease_ms) = 0;
  /// With what it held.
  virtual void end_replica(const std::string& id) = 0;
  /// Sorted by name; those whose lease is over for no longer than they are kept, too.
  virtual std::vector<ReplicaRow> list_replicas() = 0;
  /// Replicas whose lease ended more than `age_ms` ago go, with what they held and had loaded.
  virtual int64_t expire_replicas(int64_t age_ms) = 0;

  /// From now on a row that names a blob is written only if the blob is there and nobody removes it: else
  /// Error(kUnavailable), and nothing is written. For catalogs whose blobs all have rows here; it holds for
  /// this object.
  virtual void require_blobs() = 0;
  /// Returns the row whose place it takes, if that had a form.
  virtual std::optional<BlobRow> put_blob(const BlobRow& blob) = 0;
  virtual std::optional<BlobRow> find_blob(const Digest& digest) = 0;
  /// Sorted by digest, also those that have no form.
  virtual std::vector<BlobRow> list_blobs() = 0;
  /// Of those that have a form. Costs the same however many there are.
  virtual BlobSums sum_blobs() = 0;
  /// Whether there is one that has a form.
  virtual bool has_blobs() = 0;
  /// Someone is about to store it: holds that have begun keep it. False, and nothing is changed, while a
  /// process removes it.
  virtual bool touch_blob(const Digest& digest) = 0;
  /// Returns the number of the hold; what is touched later has larger numbers.
  virtual int64_t begin_blob_hold(const std::string& replica) = 0;
  virtual void end_blob_hold(int64_t hold) = 0;
  /// Holds of `replica` that are none of `known` end: whether they had begun was not known.
  virtual void end_unknown_holds(const std::string& replica, const std::vector<int64_t>& known) = 0;
  /// The least of live replicas' holds. Throws Error(kUnavailable) when the lease of `replica` is over.
  virtual std::optional<int64_t> oldest_blob_hold(const std::string& replica) = 0;
  /// Of `blobs`, those that were not touched since `oldest` and that no live replica removes. With `mark`,
  /// `replica` removes them from here to end_blob_removal. Sorted.
  virtual std::vector<Digest> begin_blob_removal(std::span<const Digest> blobs, int64_t oldest,
                                                 const std::string& replica, bool mark) = 0;
  /// Those of `gone` have no row any more; the others that `replica` removes stay.
  virtual void end_blob_removal(std::span<const Digest> blobs, std::span<const Digest> gone,
                                const std::string& replica) = 0;

  /// Error(kUnavailable) when there are `max_uploads`. With a key: the one that the owner began with it, if
  /// there is one.
  virtual UploadRow begin_upload(const UploadRow& upload, int64_t max_uploads) = 0;
  virtual std::optional<UploadRow> find_upload(const std::string& id) = 0;
  /// By id.
  virtual std::vector<UploadRow> list_uploads() = 0;
  /// Error(kNotFound), Error(kRangeNotSatisfiable) unless it begins where the upload ends, Error(kConflict)
  /// for a finished one.
  virtual void add_chunk(const std::string& upload, const ChunkRow& chunk) = 0;
  virtual std::vector<ChunkRow> list_chunks(const std::string& upload) = 0;
  /// The chunks go. False when it is not there, or not of this size any more.
  virtual bool finish_upload(const std::string& id, uint64_t size, const Digest& blob, int64_t since_ms) = 0;
  virtual bool remove_upload(const std::string& id) = 0;
  /// Reads a row of each upload.
  virtual UploadSums sum_uploads() = 0;
  /// Blobs of finished uploads, and of chunks; sorted, each once.
  virtual std::vector<Digest> upload_blobs() = 0;

  /// Adds to the log of a running attempt, if that ends at `position` bytes; what is there already stays.
  /// Returns how many bytes it has then; nothing when another attempt has the job.
  virtual std::optional<int64_t> append_log(const std::string& job, int attempt, int64_t position,
                                            std::string_view text) = 0;
  /// At most `most` bytes of that attempt's log from `position`; "" where it ends. It goes with the attempt's
  /// end. What it reads is bounded by `most` and kLogRow, however long the log is.
  virtual std::string read_log(const std::string& job, int attempt, int64_t position, size_t most) = 0;

  /// In one transaction; rows of deployments that are not there are left out.
  virtual void put_observed(std::span<const ObservedRow> rows) = 0;
  /// Of one deployment, sorted by replica.
  virtual std::vector<ObservedRow> list_observed(const std::string& deployment) = 0;
  /// Of one replica, by deployment.
  virtual std::vector<ObservedRow> observed_by(const std::string& replica) = 0;
};

}  // namespace tensormill::storage
