/// Immutable bytes named by the SHA-256 of their (uncompressed) content. README.md has the layout on disk.
/// Promise: once BlobWriter::commit or put has returned, the blob survives kill -9 and a power cut. Equal
/// bytes are stored once. Bytes are verified at the first open by this process; damage is Error(kCorrupt),
/// never wrong bytes. Whoever commits blobs that a row will name later has a BlobHold meanwhile: collect()
/// leaves them alone. What is stored is also known in memory, so that sums and lists touch no disk: the
/// folders are read once, when the store is opened. Thread-safety: BlobStore may be used by many threads; a
/// BlobWriter and a BlobHold belong to one; a Blob is immutable.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "storage/blob/blob_index.h"
#include "storage/env/env.h"

namespace tensormill::storage {

struct BlobOptions {
  BlobForm form = BlobForm::kPlain;
  /// commit throws Error(kDigestMismatch) when the bytes have another digest.
  std::optional<Digest> expected = std::nullopt;
  /// write throws Error(kTooLarge) past this many bytes; 0: no limit.
  uint64_t max_bytes = 0;
  /// Not held to bound_by(): small, and what tells why something larger was refused.
  bool always = false;
};

/// Verified bytes of one blob; they stay readable when the blob is removed.
class Blob {
public:
  Blob(Digest digest, FileDescriptor fd, std::shared_ptr<const MappedFile> mapping)
      : digest_(digest), fd_(std::move(fd)), mapping_(std::move(mapping)) {}
  const Digest& digest() const { return digest_; }
  uint64_t size() const { return mapping_->bytes().size(); }
  std::span<const std::byte> bytes() const { return mapping_->bytes(); }
  std::string_view text() const { return mapping_->text(); }
  /// Read-only descriptor of the uncompressed bytes, owned by the blob (dup it to keep it).
  int fd() const { return fd_.get(); }
  std::shared_ptr<const MappedFile> mapping() const { return mapping_; }

private:
  Digest digest_;
  FileDescriptor fd_;
  std::shared_ptr<const MappedFile> mapping_;
};

class BlobStore;

/// Streams one blob in. Destroyed before commit, or after an error, it leaves nothing behind.
class BlobWriter {
public:
  ~BlobWriter();
  BlobWriter(const BlobWriter&) = delete;
  BlobWriter& operator=(const BlobWriter&) = delete;
  void write(std::string_view bytes);
  /// Uncompressed bytes so far.
  uint64_t size() const { return size_; }
  /// Makes the blob durable and visible. The writer is spent afterwards, also after an error.
  Digest commit();

private:
  friend class BlobStore;
  struct Compressor;
  BlobWriter(BlobStore& store, std::string path, BlobOptions options);
  void put_stored(std::string_view bytes);
  void compress(std::string_view bytes, bool last);
  void discard();

  BlobStore& store_;
  std::string path_;
  BlobOptions options_;
  std::unique_ptr<EnvFile> file_;
  std::unique_ptr<Compressor> compressor_;
  Hasher hasher_;
  uint64_t size_ = 0;
  uint64_t stored_ = 0;
};

/// Between the commit of blobs and the row that names them: what is committed, or found to be there already,
/// after the hold began is not collected before it has ended. Movable; the store outlives it.
class BlobHold {
public:
  explicit BlobHold(BlobStore& store);
  ~BlobHold();
  BlobHold(BlobHold&& other) noexcept : store_(std::exchange(other.store_, nullptr)), began_(other.began_) {}
  BlobHold& operator=(BlobHold&&) = delete;
  BlobHold(const BlobHold&) = delete;
  BlobHold& operator=(const BlobHold&) = delete;

private:
  BlobStore* store_;
  uint64_t began_;
};

/// What a collection did, or would do.
struct Collected {
  uint64_t blobs = 0;
  uint64_t stored_bytes = 0;
  uint64_t held = 0;  ///< blobs that no row names and that a hold keeps
};

class BlobStore {
public:
  /// Uses `root`/blobs and `root`/tmp, made when absent. Unfinished writes of an earlier process are removed.
  /// One process at a time: the caller holds the store's lock.
  BlobStore(Env& env, std::string root);

  /// Asked with the number of further bytes before they are written to the disk, of blobs and, by upload
  /// stores, of chunks; those before them count as stored (stored_bytes) already. Throws to refuse. From many
  /// threads. Set before the store is used.
  void bound_by(std::function<void(uint64_t)> room) { room_ = std::move(room); }
  void ask_room(uint64_t bytes) const {
    if (room_) room_(bytes);
  }

  std::unique_ptr<BlobWriter> writer(BlobOptions options = {});
  /// Stores `bytes` in one go.
  Digest put(std::string_view bytes, BlobOptions options = {});
  /// Throws Error(kNotFound) or Error(kCorrupt); Error(kCancelled) when `stop` stops while the bytes are
  /// verified.
  std::shared_ptr<const Blob> open(const Digest& digest, const std::stop_token& stop = {});
  bool exists(const Digest& digest);
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
  std::vector<BlobInfo> list() const { return index_.list(); }
  /// Sums of what is stored; costs nothing.
  BlobUsage usage() const { return index_.usage(); }
  /// Bytes on disk: of the blobs, and of what is being written now. Costs nothing.
  uint64_t stored_bytes() const { return usage().stored_bytes + writing_bytes_; }
  /// Hashes the stored bytes again, whatever was verified before: Error(kNotFound) or Error(kCorrupt).
  void verify(const Digest& digest);

  Env& env() { return env_; }

private:
  friend class BlobWriter;
  friend class BlobHold;
  /// A commit under way: its blob is in use, and is not removed before this has gone.
  class Commit;
  /// Blobs that are being removed: nobody commits them meanwhile.
  class Removal;
  std::string shard_folder(const Digest& digest) const;
  std::string path_of(const Digest& digest, BlobForm form) const;
  std::optional<BlobForm> find(const Digest& digest);
  /// Fills the index from the folders.
  void read_folders();
  /// Size of a file; nothing when it is gone.
  std::optional<uint64_t> file_bytes(const std::string& path);
  void make_shard(const Digest& digest);
  /// True when a sound blob in a form that serves `wanted` is there and durable.
  bool already_stored(const Digest& digest, BlobForm wanted);
  void publish(const std::string& temporary, const BlobInfo& blob);
  std::shared_ptr<const Blob> load(const Digest& digest, BlobForm form, bool check,
                                   const std::stop_token& stop);
  /// Of the blobs of one shard; returns those that were there. Durable when it returns.
  std::vector<Digest> remove_files(const std::vector<Digest>& blobs);
  /// `looked_at`, sorted: those that are not in `kept`, sorted, go. What holds keep is released once more.
  Collected remove_strays(const std::vector<BlobInfo>& looked_at, const std::vector<Digest>& kept,
                          uint64_t oldest, bool dry_run);
  /// When the oldest hold began; there is one.
  uint64_t oldest_hold();
  /// What is released later is for the next look.
  std::vector<Digest> take_released();
  /// With mutex_: whether a hold that began at `oldest` or later, or a commit under way, keeps it.
  bool is_held(const Digest& digest, uint64_t oldest) const;

  Env& env_;
  std::string root_;
  std::function<void(uint64_t)> room_;
  Roots roots_;
  RootsAmong roots_among_;
  BlobIndex index_;
  std::atomic<uint64_t> writing_bytes_{0};
  std::atomic<uint64_t> next_temporary_{0};
  std::mutex mutex_;
  std::condition_variable removed_;  ///< something left removing_
  std::set<Digest> verified_;
  std::set<std::string> durable_shards_;
  uint64_t clock_ = 0;                  ///< counts commits and holds
  std::map<Digest, uint64_t> commits_;  ///< latest commit of each blob that a hold may keep
  std::multiset<uint64_t> holds_;       ///< when each began
  std::multiset<Digest> committing_;
  std::set<Digest> removing_;
  std::set<Digest> released_;  ///< and committed
};

}  // namespace tensormill::storage
