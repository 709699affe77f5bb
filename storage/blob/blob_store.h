/// A store of blobs: FolderBlobStore (storage/blob) or S3BlobStore (storage/s3), one interface.
/// Promise: once BlobWriter::commit or put has returned, the blob survives kill -9 and a power cut of this
/// machine. Equal bytes are stored once. Bytes are verified at the first open by this process; damage is
/// Error(kCorrupt), never wrong bytes. Whoever commits blobs that a row will name later has a BlobHold
/// meanwhile: collect() leaves them alone. What is stored is known to the index, so that sums and lists touch
/// no disk. Thread-safety: BlobStore may be used by many threads; a BlobWriter and a BlobHold belong to one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/blob/blob.h"
#include "storage/blob/blob_index.h"
#include "storage/env/env.h"

namespace tensormill::storage {

class BlobStore;

/// Streams one blob in. Destroyed before commit, or after an error, it leaves nothing behind.
class BlobWriter {
public:
  virtual ~BlobWriter();
  BlobWriter(const BlobWriter&) = delete;
  BlobWriter& operator=(const BlobWriter&) = delete;
  void write(std::string_view bytes);
  /// Uncompressed bytes so far.
  uint64_t size() const { return size_; }
  /// Makes the blob durable and visible. The writer is spent afterwards, also after an error.
  Digest commit();

protected:
  BlobWriter(BlobStore& store, BlobOptions options);
  /// Bytes as they are at rest, in order.
  virtual void append(std::string_view stored) = 0;
  /// All bytes were appended: makes them the blob, durably. The index has it when this returns.
  virtual void publish(const BlobInfo& blob) = 0;
  /// Removes what was appended; throws nothing. Called once, unless publish has returned.
  virtual void drop() = 0;
  /// For destructors of derived classes.
  void discard();

private:
  struct Compressor;
  void put_stored(std::string_view bytes);
  void compress(std::string_view bytes, bool last);

  BlobStore& store_;
  const BlobOptions options_;
  std::unique_ptr<Compressor> compressor_;
  Hasher hasher_;
  uint64_t size_ = 0;
  uint64_t stored_ = 0;
  bool is_spent_ = false;
};

/// Between the commit of blobs and the row that names them: what is committed, or found to be there already,
/// after the hold began is not collected before it has ended. Movable; the store outlives it.
class BlobHold {
public:
  explicit BlobHold(BlobStore& store);
  ~BlobHold();
  BlobHold(BlobHold&& other) noexcept : index_(std::exchange(other.index_, nullptr)), hold_(other.hold_) {}
  BlobHold& operator=(BlobHold&&) = delete;
  BlobHold(const BlobHold&) = delete;
  BlobHold& operator=(const BlobHold&) = delete;

private:
  BlobIndex* index_;
  uint64_t hold_;
};

/// What a collection did, or would do.
struct Collected {
  uint64_t blobs = 0;
  uint64_t stored_bytes = 0;
  uint64_t held = 0;  ///< blobs that no row names and that a hold keeps
};

class BlobStore {
public:
  virtual ~BlobStore();
  BlobStore(const BlobStore&) = delete;
  BlobStore& operator=(const BlobStore&) = delete;

  /// Asked with the number of further bytes before they are written to the store, of blobs and, by upload
  /// stores, of chunks; those before them count as stored (stored_bytes) already. Throws to refuse. From many
  /// threads. Set before the store is used.
  void bound_by(std::function<void(uint64_t)> room) { room_ = std::move(room); }
  void ask_room(uint64_t bytes) const {
    if (room_) room_(bytes);
  }

  virtual std::unique_ptr<BlobWriter> writer(BlobOptions options = {}) = 0;
  /// Stores `bytes` in one go.
  Digest put(std::string_view bytes, BlobOptions options = {});
  /// Throws Error(kNotFound) or Error(kCorrupt); Error(kCancelled) when `stop` stops while the bytes are
  /// verified.
  virtual std::shared_ptr<const Blob> open(const Digest& digest, const std::stop_token& stop = {}) = 0;
  virtual bool exists(const Digest& digest) = 0;
  /// As a commit of the same bytes: while a hold lives that began before, the blob stays. False when it is
  /// not there.
  bool keep(const Digest& digest);
  /// False when it was not there. Durable when it returns.
  bool remove(const Digest& digest);
  /// Every blob that must stay, sorted, each once.
  using Roots = std::function<std::vector<Digest>()>;
  /// Those of the given blobs, sorted and each once, that must stay; sorted.
  using RootsAmong = std::function<std::vector<Digest>(const std::vector<Digest>&)>;
  /// Says, once and for all collections, what must stay. Both are asked by collections on their threads;
  /// where `among` is not given, all are read to tell.
  void keep_roots(Roots roots, RootsAmong among = nullptr);
  /// Asks the function that keep_roots was given.
  std::vector<Digest> roots() const;
  /// Removes every blob that is no root and that no hold keeps, while others read and commit: only a commit
  /// of a blob that is being removed waits for that. `dry_run`: only counts. InternalError before keep_roots:
  /// nothing else says what is garbage.
  Collected collect(bool dry_run = false);
  /// The next collect_released() looks at these: a row that named them has gone, or names others now.
  void release(std::span<const Digest> blobs);
  /// As collect(), but looks only at blobs that were released or committed since a collection last looked at
  /// them, or that it left because of a hold. What it costs follows from their number, not from that of all
  /// blobs.
  Collected collect_released();
  /// All blobs, sorted by digest.
  std::vector<BlobInfo> list() const { return index_->list(); }
  /// Sums of what is stored; costs nothing.
  BlobUsage usage() const { return index_->usage(); }
  /// Bytes at rest: of the blobs, and of what is being written now. Costs nothing.
  uint64_t stored_bytes() const { return usage().stored_bytes + writing_bytes_; }
  /// Hashes the stored bytes again, whatever was verified before: Error(kNotFound) or Error(kCorrupt).
  virtual void verify(const Digest& digest) = 0;
  /// The file system of this machine that the store uses.
  Env& env() { return env_; }

protected:
  BlobStore(Env& env, std::unique_ptr<BlobIndex> index);
  /// A commit under way: its blob is in use, and is not removed before this has gone.
  class Commit;
  /// True when a sound blob in a form that serves `wanted` is there and durable.
  virtual bool already_stored(const Digest& digest, BlobForm wanted) = 0;
  /// Removes both forms of blobs of one group, from the index, too; returns those that were there. Durable
  /// when it returns. Nobody commits them meanwhile.
  virtual std::vector<Digest> remove_stored(std::span<const Digest> blobs) = 0;
  /// How many of `blobs`, sorted and not empty, remove_stored takes in one call, from the first on.
  virtual size_t group_of(std::span<const BlobInfo> blobs) const = 0;
  /// The bytes of such a blob were found to have its digest since this process started, and nobody removed
  /// it.
  bool is_verified(const Digest& digest);
  void set_verified(const Digest& digest, bool verified);
  BlobIndex& index() { return *index_; }

private:
  friend class BlobWriter;
  friend class BlobHold;
  /// `looked_at`, sorted: those that are not in `kept`, sorted, go. What holds keep is released once more.
  Collected remove_strays(const std::vector<BlobInfo>& looked_at, const std::vector<Digest>& kept,
                          uint64_t oldest, bool dry_run);
  void release(std::set<Digest>&& blobs) noexcept;
  /// What is released later is for the next look.
  std::vector<Digest> take_released();

  Env& env_;
  const std::unique_ptr<BlobIndex> index_;
  std::function<void(uint64_t)> room_;
  Roots roots_;
  RootsAmong roots_among_;
  std::atomic<uint64_t> writing_bytes_{0};
  std::mutex mutex_;
  std::set<Digest> verified_;
  std::set<Digest> released_;  ///< and committed
};

}  // namespace tensormill::storage
