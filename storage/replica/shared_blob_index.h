/// The index of blobs that several processes share: rows of their catalog. A blob that is being stored has a
/// row before its first byte is, so that what a lost process left is found and removed by any other; a blob
/// that is being removed is marked first, and a mark of a process whose lease is over is taken over. No
/// process is more than another. README.md has the order of steps. Errors: as Catalog. Thread-safety: as
/// BlobIndex.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "storage/blob/blob_index.h"
#include "storage/catalog/shared_catalog.h"

namespace tensormill::storage {

struct SharedIndexOptions {
  std::string replica;  ///< id of this process
  /// Whether its lease will hold for what is begun now; null: it always does.
  std::function<bool()> is_sure = nullptr;
  /// A commit waits so long for the removal of the same blob; then Error(kUnavailable).
  std::chrono::milliseconds patience{30'000};
  /// How old the others' part of usage() may be.
  std::chrono::milliseconds usage_age{10'000};
};

class SharedBlobIndex final : public BlobIndex {
public:
  SharedBlobIndex(SharedCatalog& catalog, SharedIndexOptions options);

  void put(const BlobInfo& blob) override;
  void erase(const Digest& digest) override;
  std::optional<BlobInfo> find(const Digest& digest) override;
  std::vector<BlobInfo> list() override;
  std::vector<BlobInfo> collectable() override;
  BlobUsage usage() override;
  bool is_empty() override { return !catalog_.has_blobs(); }
  void begin_commit(const Digest& digest) override;
  void end_commit(const Digest& digest) override;
  uint64_t begin_hold() override;
  void end_hold(uint64_t hold) override;
  std::optional<uint64_t> oldest_hold() override;
  std::vector<Digest> begin_removal(std::span<const Digest> blobs, uint64_t oldest, bool mark) override;
  void begin_removal(const Digest& digest) override;
  void end_removal(std::span<const Digest> blobs) override;
  bool is_shared() const override { return true; }

private:
  struct Hold {
    size_t commits = 0;     ///< under way, which it keeps
    bool is_ended = false;  ///< goes with the last of them
  };
  /// Of a hold that is there for a commit of this process, or a new one.
  int64_t take_hold();
  void leave_hold(int64_t hold);
  int64_t new_hold(Hold hold);
  /// The catalog may be unreachable when something ends: then the change is written later.
  void end_later(const std::function<void()>& end);
  void tell_ends();
  void require_sure() const;
  void count(const BlobInfo& blob, bool is_new);
  void wait_a_little(std::chrono::steady_clock::time_point since, const Digest& digest);

  SharedCatalog& catalog_;
  const SharedIndexOptions options_;
  std::mutex beginning_;           ///< one hold is begun at a time; before mutex_
  bool may_have_unknown_ = false;  ///< with beginning_: of a hold it is not known whether it has begun
  std::mutex mutex_;
  std::condition_variable changed_;  ///< a removal of this process has ended
  std::map<int64_t, Hold> holds_;
  std::multimap<Digest, int64_t> commits_;  ///< the hold of each
  std::set<Digest> removing_;
  std::set<Digest> erased_;  ///< of these, those that are gone
  std::vector<std::function<void()>> ends_;
  BlobUsage usage_;
  std::optional<std::chrono::steady_clock::time_point> usage_time_;
};

}  // namespace tensormill::storage
