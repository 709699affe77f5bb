/// What is known of blobs beside their bytes: which there are, and which are in use. It is the part of a blob
/// store that replicas which share one must share, too; MemoryBlobIndex is that of a lone process.
/// Thread-safety: all methods from many threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "storage/blob/blob.h"

namespace tensormill::storage {

/// A blob is either being committed (by any number) or being removed, never both. A hold keeps what is
/// committed after it began.
class BlobIndex {
public:
  virtual ~BlobIndex() = default;
  /// Takes the place of an earlier entry of the same digest.
  virtual void put(const BlobInfo& blob) = 0;
  virtual void erase(const Digest& digest) = 0;
  virtual std::optional<BlobInfo> find(const Digest& digest) = 0;
  /// Sorted by digest.
  virtual std::vector<BlobInfo> list() = 0;
  /// Of a shared one: others' changes of the last seconds may not be in it. Costs the same however many there
  /// are.
  virtual BlobUsage usage() = 0;
  virtual bool is_empty() = 0;

  /// Waits while the blob is being removed. Until end_commit nobody removes it; holds that began before keep
  /// it until their end.
  virtual void begin_commit(const Digest& digest) = 0;
  virtual void end_commit(const Digest& digest) = 0;

  /// Returns the hold's number; later ones are larger.
  virtual uint64_t begin_hold() = 0;
  virtual void end_hold(uint64_t hold) = 0;
  /// The number of the oldest hold that has not ended.
  virtual std::optional<uint64_t> oldest_hold() = 0;

  /// Of `blobs`, those that neither a commit under way nor one since the hold `oldest` keeps, and that nobody
  /// removes; with `mark` they are being removed from here to end_removal.
  virtual std::vector<Digest> begin_removal(std::span<const Digest> blobs, uint64_t oldest, bool mark) = 0;
  /// Waits while somebody else removes it; it is being removed then, whatever holds it.
  virtual void begin_removal(const Digest& digest) = 0;
  virtual void end_removal(std::span<const Digest> blobs) = 0;

  /// What a collection looks at: list(), and what was begun to be stored and has no form.
  virtual std::vector<BlobInfo> collectable() { return list(); }
  /// Other processes have the same index, and what it does not know is not there: no need to ask the store.
  virtual bool is_shared() const { return false; }
};

class MemoryBlobIndex final : public BlobIndex {
public:
  void put(const BlobInfo& blob) override;
  void erase(const Digest& digest) override;
  std::optional<BlobInfo> find(const Digest& digest) override;
  std::vector<BlobInfo> list() override;
  BlobUsage usage() override;
  bool is_empty() override;
  void begin_commit(const Digest& digest) override;
  void end_commit(const Digest& digest) override;
  uint64_t begin_hold() override;
  void end_hold(uint64_t hold) override;
  std::optional<uint64_t> oldest_hold() override;
  std::vector<Digest> begin_removal(std::span<const Digest> blobs, uint64_t oldest, bool mark) override;
  void begin_removal(const Digest& digest) override;
  void end_removal(std::span<const Digest> blobs) override;

private:
  struct Entry {
    BlobForm form;
    uint64_t stored_bytes;
  };
  void count(const Entry& entry, bool is_new);
  /// With mutex_: whether a commit since the hold `oldest`, or one under way, keeps it.
  bool is_held(const Digest& digest, uint64_t oldest) const;

  std::mutex mutex_;
  std::condition_variable removed_;  ///< something left removing_
  std::map<Digest, Entry> blobs_;
  BlobUsage usage_;
  uint64_t clock_ = 0;                  ///< counts commits and holds
  std::map<Digest, uint64_t> commits_;  ///< latest commit of each blob that a hold may keep
  std::multiset<uint64_t> holds_;       ///< when each began
  std::multiset<Digest> committing_;
  std::set<Digest> removing_;
};

}  // namespace tensormill::storage
