#include "storage/replica/shared_blob_index.h"

#include <limits>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Other processes do not tell when a removal has ended.
constexpr milliseconds kLook{20};

BlobInfo info_of(const BlobRow& row) {
  return {row.digest,
          row.form == static_cast<int>(BlobForm::kCompressed) ? BlobForm::kCompressed : BlobForm::kPlain,
          row.stored_bytes};
}

}  // namespace

SharedBlobIndex::SharedBlobIndex(SharedCatalog& catalog, SharedIndexOptions options)
    : catalog_(catalog), options_(std::move(options)) {}

void SharedBlobIndex::put(const BlobInfo& blob) {
  const std::optional<BlobRow> before =
      catalog_.put_blob({blob.digest, static_cast<int>(blob.form), blob.stored_bytes});
  const std::lock_guard lock(mutex_);
  if (before) count(info_of(*before), false);
  count(blob, true);
}

/// With mutex_.
void SharedBlobIndex::count(const BlobInfo& blob, bool is_new) {
  const uint64_t one = is_new ? 1 : ~uint64_t{0};  // unsigned, so that adding the latter subtracts one
  usage_.blobs += one;
  if (blob.form == BlobForm::kCompressed) usage_.compressed += one;
  usage_.stored_bytes += is_new ? blob.stored_bytes : -blob.stored_bytes;
}

/// The row goes when its removal ends: until then it says that the blob is being removed.
void SharedBlobIndex::erase(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  if (removing_.contains(digest)) erased_.insert(digest);
}

std::optional<BlobInfo> SharedBlobIndex::find(const Digest& digest) {
  const std::optional<BlobRow> row = catalog_.find_blob(digest);
  if (!row || !row->form) return std::nullopt;
  return info_of(*row);
}

std::vector<BlobInfo> SharedBlobIndex::list() {
  std::vector<BlobInfo> blobs;
  for (const BlobRow& row : catalog_.list_blobs()) {
    if (row.form) blobs.push_back(info_of(row));
  }
  return blobs;
}

std::vector<BlobInfo> SharedBlobIndex::collectable() {
  std::vector<BlobInfo> blobs;
  for (const BlobRow& row : catalog_.list_blobs()) blobs.push_back(info_of(row));
  return blobs;
}

BlobUsage SharedBlobIndex::usage() {
  const auto now = steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (usage_time_ && now - *usage_time_ < options_.usage_age) return usage_;
  }
  const BlobSums sums = catalog_.sum_blobs();
  const std::lock_guard lock(mutex_);
  usage_ = {sums.blobs, sums.compressed, sums.stored_bytes};
  usage_time_ = now;
  return usage_;
}

void SharedBlobIndex::end_later(const std::function<void()>& end) {
  try {
    end();
  } catch (const Error&) {
    const std::lock_guard lock(mutex_);
    ends_.push_back(end);
  }
}

void SharedBlobIndex::tell_ends() {
  std::vector<std::function<void()>> ends;
  {
    const std::lock_guard lock(mutex_);
    if (ends_.empty()) return;
    ends = std::exchange(ends_, {});
  }
  for (const auto& end : ends) end_later(end);
}

int64_t SharedBlobIndex::take_hold() {
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, hold] : holds_) {
      if (hold.is_ended) continue;
      ++hold.commits;
      return id;
    }
  }
  return new_hold({1, true});
}

/// Where the answer of the database is lost there may be a hold that nobody would end.
int64_t SharedBlobIndex::new_hold(Hold hold) {
  const std::lock_guard beginning(beginning_);
  if (may_have_unknown_) {
    std::vector<int64_t> known;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [id, one] : holds_) known.push_back(id);
    }
    catalog_.end_unknown_holds(options_.replica, known);
  }
  may_have_unknown_ = true;
  const int64_t id = catalog_.begin_blob_hold(options_.replica);
  may_have_unknown_ = false;
  const std::lock_guard lock(mutex_);
  holds_[id] = hold;
  return id;
}

void SharedBlobIndex::leave_hold(int64_t hold) {
  {
    const std::lock_guard lock(mutex_);
    Hold& left = holds_.at(hold);
    --left.commits;
    if (!left.is_ended || left.commits != 0) return;
    holds_.erase(hold);
  }
  end_later([this, hold] { catalog_.end_blob_hold(hold); });
}

void SharedBlobIndex::wait_a_little(steady_clock::time_point since, const Digest& digest) {
  if (steady_clock::now() - since > options_.patience)
    throw Error(ErrorCode::kUnavailable, "blob " + digest.text() + " is being removed");
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kLook);
}

void SharedBlobIndex::begin_commit(const Digest& digest) {
  tell_ends();
  // Without a hold a collection that begins after the row is touched would take it away while it is stored.
  const int64_t hold = take_hold();
  try {
    const auto since = steady_clock::now();
    while (!catalog_.touch_blob(digest)) wait_a_little(since, digest);
  } catch (const Error&) {
    leave_hold(hold);
    throw;
  }
  const std::lock_guard lock(mutex_);
  commits_.emplace(digest, hold);
}

void SharedBlobIndex::end_commit(const Digest& digest) {
  int64_t hold = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto commit = commits_.find(digest);
    hold = commit->second;
    commits_.erase(commit);
  }
  leave_hold(hold);
}

uint64_t SharedBlobIndex::begin_hold() {
  tell_ends();
  return static_cast<uint64_t>(new_hold({}));
}

void SharedBlobIndex::end_hold(uint64_t hold) {
  const auto id = static_cast<int64_t>(hold);
  {
    const std::lock_guard lock(mutex_);
    Hold& ended = holds_.at(id);
    ended.is_ended = true;
    if (ended.commits != 0) return;
    holds_.erase(id);
  }
  end_later([this, id] { catalog_.end_blob_hold(id); });
}

std::optional<uint64_t> SharedBlobIndex::oldest_hold() {
  tell_ends();
  const std::optional<int64_t> oldest = catalog_.oldest_blob_hold(options_.replica);
  if (!oldest) return std::nullopt;
  return static_cast<uint64_t>(*oldest);
}

/// Before bytes are removed: a process that was held up must not remove what others, who took its mark for
/// that of a dead one, have stored since.
void SharedBlobIndex::require_sure() const {
  if (options_.is_sure && !options_.is_sure())
    throw Error(ErrorCode::kUnavailable, "this process has not renewed its lease: it removes nothing");
}

std::vector<Digest> SharedBlobIndex::begin_removal(std::span<const Digest> blobs, uint64_t oldest,
                                                   bool mark) {
  tell_ends();
  if (mark) require_sure();
  std::vector<Digest> unused;
  try {
    unused = catalog_.begin_blob_removal(blobs, static_cast<int64_t>(oldest), options_.replica, mark);
  } catch (const Error&) {
    // They may be marked, and nobody else would take the marks away while this process lives.
    const std::lock_guard lock(mutex_);
    ends_.emplace_back([this, all = std::vector<Digest>(blobs.begin(), blobs.end())] {
      catalog_.end_blob_removal(all, {}, options_.replica);
    });
    throw;
  }
  if (mark) {
    const std::lock_guard lock(mutex_);
    removing_.insert(unused.begin(), unused.end());
  }
  if (!mark || !options_.is_sure || options_.is_sure()) return unused;
  end_removal(unused);
  require_sure();
  return {};
}

void SharedBlobIndex::begin_removal(const Digest& digest) {
  tell_ends();
  require_sure();
  const auto since = steady_clock::now();
  const std::span<const Digest> one(&digest, 1);
  while (catalog_.find_blob(digest)) {
    constexpr int64_t kWhateverHoldsIt = std::numeric_limits<int64_t>::max();
    if (!catalog_.begin_blob_removal(one, kWhateverHoldsIt, options_.replica, true).empty()) break;
    wait_a_little(since, digest);
  }
  const std::lock_guard lock(mutex_);
  removing_.insert(digest);
}

void SharedBlobIndex::end_removal(std::span<const Digest> blobs) {
  if (blobs.empty()) return;
  std::vector<Digest> gone;
  {
    const std::lock_guard lock(mutex_);
    for (const Digest& digest : blobs) {
      removing_.erase(digest);
      if (erased_.erase(digest) != 0) gone.push_back(digest);
    }
    usage_time_.reset();
  }
  end_later([this, all = std::vector<Digest>(blobs.begin(), blobs.end()), gone] {
    catalog_.end_blob_removal(all, gone, options_.replica);
  });
  changed_.notify_all();
}

}  // namespace tensormill::storage
