#include "storage/blob/blob_store.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/stoppable_digest.h"
#include "storage/blob/zstd_stream.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kCompressedSuffix = ".zst";

}  // namespace

BlobStore::BlobStore(Env& env, std::string root) : env_(env), root_(std::move(root)) {
  make_durable_folders(env_, root_ + "/blobs/sha256");
  // Nothing in tmp is ever promised, so its name needs no sync.
  remove_tree(env_, root_ + "/tmp");
  env_.make_folder(root_ + "/tmp");
  read_folders();
}

class BlobStore::Commit {
public:
  Commit(BlobStore& store, const Digest& digest) : store_(store), digest_(digest) {
    std::unique_lock lock(store.mutex_);
    store.removed_.wait(lock, [&] { return !store.removing_.contains(digest); });
    store.committing_.insert(digest);
    store.released_.insert(digest);
    if (!store.holds_.empty()) store.commits_[digest] = ++store.clock_;
  }
  ~Commit() {
    const std::lock_guard lock(store_.mutex_);
    store_.committing_.erase(store_.committing_.find(digest_));
  }
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

private:
  BlobStore& store_;
  const Digest digest_;
};

/// Made with the store's mutex held.
class BlobStore::Removal {
public:
  Removal(BlobStore& store, std::vector<Digest> blobs) : store_(store), blobs_(std::move(blobs)) {
    for (const Digest& digest : blobs_) store.verified_.erase(digest);
    store.removing_.insert(blobs_.begin(), blobs_.end());
  }
  ~Removal() {
    {
      const std::lock_guard lock(store_.mutex_);
      for (const Digest& digest : blobs_) store_.removing_.erase(digest);
    }
    store_.removed_.notify_all();
  }
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;
  const std::vector<Digest>& blobs() const { return blobs_; }

private:
  BlobStore& store_;
  const std::vector<Digest> blobs_;
};

std::string BlobStore::shard_folder(const Digest& digest) const {
  return root_ + "/blobs/sha256/" + digest.hex().substr(0, 2);
}

std::string BlobStore::path_of(const Digest& digest, BlobForm form) const {
  std::string path = shard_folder(digest) + "/" + digest.hex();
  if (form == BlobForm::kCompressed) path += kCompressedSuffix;
  return path;
}

std::unique_ptr<BlobWriter> BlobStore::writer(BlobOptions options) {
  std::string path = root_ + "/tmp/blob-" + std::to_string(next_temporary_++);
  return std::unique_ptr<BlobWriter>(new BlobWriter(*this, std::move(path), options));
}

Digest BlobStore::put(std::string_view bytes, BlobOptions options) {
  const std::unique_ptr<BlobWriter> target = writer(options);
  target->write(bytes);
  return target->commit();
}

std::optional<BlobForm> BlobStore::find(const Digest& digest) {
  if (env_.exists(path_of(digest, BlobForm::kPlain))) return BlobForm::kPlain;
  if (env_.exists(path_of(digest, BlobForm::kCompressed))) return BlobForm::kCompressed;
  return std::nullopt;
}

bool BlobStore::exists(const Digest& digest) { return find(digest).has_value(); }

bool BlobStore::keep(const Digest& digest) {
  const Commit commit(*this, digest);
  return exists(digest);
}

void BlobStore::make_shard(const Digest& digest) {
  const std::string folder = shard_folder(digest);
  const std::lock_guard lock(mutex_);
  if (durable_shards_.contains(folder)) return;
  env_.make_folder(folder);
  env_.sync_folder(parent_folder(folder));
  durable_shards_.insert(folder);
}

bool BlobStore::already_stored(const Digest& digest, BlobForm wanted) {
  const std::optional<BlobForm> found = find(digest);
  if (!found || (wanted == BlobForm::kPlain && *found != BlobForm::kPlain)) return false;
  try {
    open(digest);
  } catch (const Error& error) {
    // Damaged or just removed: the bytes at hand take its place.
    if (error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kNotFound) return false;
    throw;
  }
  // Another writer, or a process that died, may have renamed it and not yet synced the names.
  make_shard(digest);
  env_.sync_folder(shard_folder(digest));
  return true;
}

void BlobStore::publish(const std::string& temporary, const BlobInfo& blob) {
  make_shard(blob.digest);
  env_.rename(temporary, path_of(blob.digest, blob.form));
  index_.put(blob);
  if (blob.form == BlobForm::kPlain) env_.remove_file(path_of(blob.digest, BlobForm::kCompressed));
  env_.sync_folder(shard_folder(blob.digest));
}

std::shared_ptr<const Blob> BlobStore::load(const Digest& digest, BlobForm form, bool check,
                                            const std::stop_token& stop) {
  const std::string path = path_of(digest, form);
  FileDescriptor fd = env_.open_descriptor(path);
  std::shared_ptr<const MappedFile> mapping = MappedFile::map(fd.get(), path);
  if (form == BlobForm::kCompressed) {
    fd = env_.scratch_file(root_ + "/tmp");
    decompress(mapping->text(), fd.get(), path);
    mapping = MappedFile::map(fd.get(), path);
  }
  if (check) {
    const Digest actual = digest_unless_stopped(mapping->bytes(), stop);
    if (actual != digest) {
      throw Error(ErrorCode::kCorrupt, "blob " + digest.text() + " has bytes of digest " + actual.text());
    }
  }
  return std::make_shared<const Blob>(digest, std::move(fd), std::move(mapping));
}

std::shared_ptr<const Blob> BlobStore::open(const Digest& digest, const std::stop_token& stop) {
  const std::optional<BlobForm> form = find(digest);
  if (!form) throw Error(ErrorCode::kNotFound, "no blob " + digest.text());
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    known = verified_.contains(digest);
  }
  std::shared_ptr<const Blob> blob;
  try {
    blob = load(digest, *form, !known, stop);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound || *form == BlobForm::kPlain) throw;
    // A commit of the plain form has removed the compressed one since it was found.
    blob = load(digest, BlobForm::kPlain, !known, stop);
  }
  if (!known) {
    const std::lock_guard lock(mutex_);
    verified_.insert(digest);
  }
  return blob;
}

void BlobStore::verify(const Digest& digest) {
  {
    const std::lock_guard lock(mutex_);
    verified_.erase(digest);
  }
  open(digest);
}

std::vector<Digest> BlobStore::remove_files(const std::vector<Digest>& blobs) {
  std::vector<Digest> gone;
  for (const Digest& digest : blobs) {
    const bool plain = env_.remove_file(path_of(digest, BlobForm::kPlain));
    const bool compressed = env_.remove_file(path_of(digest, BlobForm::kCompressed));
    index_.erase(digest);
    if (plain || compressed) gone.push_back(digest);
  }
  if (!gone.empty()) env_.sync_folder(shard_folder(gone.front()));
  return gone;
}

bool BlobStore::remove(const Digest& digest) {
  std::optional<Removal> removal;
  {
    std::unique_lock lock(mutex_);
    removed_.wait(lock, [&] { return !removing_.contains(digest); });
    removal.emplace(*this, std::vector<Digest>{digest});
  }
  return !remove_files(removal->blobs()).empty();
}

bool BlobStore::is_held(const Digest& digest, uint64_t oldest) const {
  if (committing_.contains(digest)) return true;
  const auto commit = commits_.find(digest);
  return commit != commits_.end() && commit->second > oldest;
}

BlobHold::BlobHold(BlobStore& store) : store_(&store) {
  const std::lock_guard lock(store.mutex_);
  began_ = ++store.clock_;
  store.holds_.insert(began_);
}

BlobHold::~BlobHold() {
  if (store_ == nullptr) return;
  const std::lock_guard lock(store_->mutex_);
  store_->holds_.erase(began_);
  if (store_->holds_.empty()) store_->commits_.clear();
}

void BlobStore::keep_roots(Roots roots, RootsAmong among) {
  TM_CHECK(!roots_, "a store's roots are named once");
  roots_ = std::move(roots);
  roots_among_ = std::move(among);
}

std::vector<Digest> BlobStore::roots() const {
  TM_CHECK(roots_ != nullptr, "nobody has said what a collection must keep");
  return roots_();
}

uint64_t BlobStore::oldest_hold() {
  const std::lock_guard lock(mutex_);
  return *holds_.begin();
}

void BlobStore::release(std::span<const Digest> blobs) {
  const std::lock_guard lock(mutex_);
  released_.insert(blobs.begin(), blobs.end());
}

Collected BlobStore::remove_strays(const std::vector<BlobInfo>& looked_at, const std::vector<Digest>& kept,
                                   uint64_t oldest, bool dry_run) {
  std::vector<BlobInfo> stray;
  for (const BlobInfo& blob : looked_at) {
    if (!std::binary_search(kept.begin(), kept.end(), blob.digest)) stray.push_back(blob);
  }
  Collected done;
  // A shard at a time: one sync for all that goes in it.
  for (auto begin = stray.begin(); begin != stray.end();) {
    const std::string shard = shard_folder(begin->digest);
    const auto end = std::find_if(begin, stray.end(),
                                  [&](const BlobInfo& blob) { return shard_folder(blob.digest) != shard; });
    std::optional<Removal> removal;
    {
      const std::lock_guard lock(mutex_);
      std::vector<Digest> garbage;
      for (const BlobInfo& blob : std::span(begin, end)) {
        if (is_held(blob.digest, oldest) || removing_.contains(blob.digest)) {
          ++done.held;
          if (!dry_run) released_.insert(blob.digest);
          continue;
        }
        garbage.push_back(blob.digest);
        ++done.blobs;
        done.stored_bytes += blob.stored_bytes;
      }
      if (!dry_run) removal.emplace(*this, std::move(garbage));
    }
    if (removal) remove_files(removal->blobs());
    begin = end;
  }
  return done;
}

std::vector<Digest> BlobStore::take_released() {
  const std::lock_guard lock(mutex_);
  const std::set<Digest> taken = std::exchange(released_, {});
  return {taken.begin(), taken.end()};
}

Collected BlobStore::collect(bool dry_run) {
  // With a hold of its own every commit from here on is noted. A hold that ends after this has a row by then,
  // which may be too late for the roots: what such holds keep now is kept to the end.
  const BlobHold own(*this);
  const uint64_t oldest = oldest_hold();
  if (dry_run) return remove_strays(index_.list(), roots(), oldest, true);
  const std::vector<Digest> released = take_released();
  try {
    const std::vector<Digest> kept = roots();
    return remove_strays(index_.list(), kept, oldest, false);
  } catch (const Error&) {
    release(released);
    throw;
  }
}

Collected BlobStore::collect_released() {
  const BlobHold own(*this);
  const uint64_t oldest = oldest_hold();
  const std::vector<Digest> released = take_released();
  try {
    const std::vector<Digest> kept = roots_among_ ? roots_among_(released) : roots();
    std::vector<BlobInfo> stored;
    for (const Digest& digest : released) {
      if (const std::optional<BlobInfo> blob = index_.find(digest)) stored.push_back(*blob);
    }
    return remove_strays(stored, kept, oldest, false);
  } catch (const Error&) {
    release(released);
    throw;
  }
}

std::optional<uint64_t> BlobStore::file_bytes(const std::string& path) {
  try {
    return env_.file_size(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) return std::nullopt;
    throw;
  }
}

void BlobStore::read_folders() {
  const std::string base = root_ + "/blobs/sha256";
  for (const FolderEntry& shard : env_.list(base)) {
    if (!shard.is_folder) continue;
    // Sorted: of two forms of a blob the plain one comes first, and counts.
    std::optional<Digest> before;
    for (const FolderEntry& entry : env_.list(base + "/" + shard.name)) {
      std::string hex = entry.name;
      const bool compressed = hex.ends_with(kCompressedSuffix);
      if (compressed) hex.resize(hex.size() - kCompressedSuffix.size());
      const std::optional<Digest> digest = Digest::parse("sha256:" + hex);
      if (!digest || hex.substr(0, 2) != shard.name || digest == before) continue;
      const BlobForm form = compressed ? BlobForm::kCompressed : BlobForm::kPlain;
      const std::optional<uint64_t> bytes = file_bytes(path_of(*digest, form));
      if (!bytes) continue;
      index_.put({*digest, form, *bytes});
      before = digest;
    }
  }
}

}  // namespace tensormill::storage
