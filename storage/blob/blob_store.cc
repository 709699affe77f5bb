#include "storage/blob/blob_store.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/error.h"
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
}

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

void BlobStore::publish(const std::string& temporary, const Digest& digest, BlobForm form) {
  make_shard(digest);
  env_.rename(temporary, path_of(digest, form));
  if (form == BlobForm::kPlain) env_.remove_file(path_of(digest, BlobForm::kCompressed));
  env_.sync_folder(shard_folder(digest));
}

std::shared_ptr<const Blob> BlobStore::load(const Digest& digest, BlobForm form, bool check) {
  const std::string path = path_of(digest, form);
  FileDescriptor fd = env_.open_descriptor(path);
  std::shared_ptr<const MappedFile> mapping = MappedFile::map(fd.get(), path);
  if (form == BlobForm::kCompressed) {
    fd = env_.scratch_file(root_ + "/tmp");
    decompress(mapping->text(), fd.get(), path);
    mapping = MappedFile::map(fd.get(), path);
  }
  if (check) {
    const Digest actual = Digest::of(mapping->bytes());
    if (actual != digest) {
      throw Error(ErrorCode::kCorrupt, "blob " + digest.text() + " has bytes of digest " + actual.text());
    }
  }
  return std::make_shared<const Blob>(digest, std::move(fd), std::move(mapping));
}

std::shared_ptr<const Blob> BlobStore::open(const Digest& digest) {
  const std::optional<BlobForm> form = find(digest);
  if (!form) throw Error(ErrorCode::kNotFound, "no blob " + digest.text());
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    known = verified_.contains(digest);
  }
  std::shared_ptr<const Blob> blob;
  try {
    blob = load(digest, *form, !known);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound || *form == BlobForm::kPlain) throw;
    // A commit of the plain form has removed the compressed one since it was found.
    blob = load(digest, BlobForm::kPlain, !known);
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

bool BlobStore::remove(const Digest& digest) {
  {
    const std::lock_guard lock(mutex_);
    verified_.erase(digest);
  }
  const bool plain = env_.remove_file(path_of(digest, BlobForm::kPlain));
  const bool compressed = env_.remove_file(path_of(digest, BlobForm::kCompressed));
  if (plain || compressed) env_.sync_folder(shard_folder(digest));
  return plain || compressed;
}

uint64_t BlobStore::keep_only(const std::vector<Digest>& kept) {
  uint64_t removed = 0;
  for (const BlobInfo& blob : list()) {
    if (std::binary_search(kept.begin(), kept.end(), blob.digest)) continue;
    if (remove(blob.digest)) ++removed;
  }
  return removed;
}

void BlobStore::note_commit(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  if (!holds_.empty()) commits_[digest] = ++clock_;
}

std::set<Digest> BlobStore::held() {
  const std::lock_guard lock(mutex_);
  std::set<Digest> digests;
  if (holds_.empty()) return digests;
  for (const auto& [digest, commit] : commits_) {
    if (commit > *holds_.begin()) digests.insert(digest);
  }
  return digests;
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

Collected BlobStore::collect(const std::function<std::vector<Digest>()>& referenced, bool dry_run) {
  const std::unique_lock lock(committing_);
  // Held blobs first: a hold that ends after this has a row by then, which `referenced` may be too early to
  // see.
  const std::set<Digest> held_blobs = held();
  const std::vector<Digest> kept = referenced();
  Collected done;
  for (const BlobInfo& blob : list()) {
    if (std::binary_search(kept.begin(), kept.end(), blob.digest)) continue;
    if (held_blobs.contains(blob.digest)) {
      ++done.held;
      continue;
    }
    if (!dry_run) remove(blob.digest);
    ++done.blobs;
    done.stored_bytes += blob.stored_bytes;
  }
  return done;
}

std::optional<uint64_t> BlobStore::stored_bytes(const std::string& path) {
  try {
    return env_.file_size(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) return std::nullopt;
    throw;
  }
}

std::vector<BlobInfo> BlobStore::list() {
  std::map<Digest, BlobInfo> found;
  const std::string base = root_ + "/blobs/sha256";
  for (const FolderEntry& shard : env_.list(base)) {
    if (!shard.is_folder) continue;
    for (const FolderEntry& entry : env_.list(base + "/" + shard.name)) {
      std::string hex = entry.name;
      const bool compressed = hex.ends_with(kCompressedSuffix);
      if (compressed) hex.resize(hex.size() - kCompressedSuffix.size());
      const std::optional<Digest> digest = Digest::parse("sha256:" + hex);
      if (!digest || hex.substr(0, 2) != shard.name) continue;
      const BlobForm form = compressed ? BlobForm::kCompressed : BlobForm::kPlain;
      if (form == BlobForm::kCompressed && found.contains(*digest)) continue;
      // A name of the folder's listing may be gone by now: blobs come and go meanwhile.
      const std::optional<uint64_t> bytes = stored_bytes(path_of(*digest, form));
      if (bytes) found.insert_or_assign(*digest, BlobInfo{*digest, form, *bytes});
    }
  }
  std::vector<BlobInfo> blobs;
  for (auto& [digest, info] : found) blobs.push_back(info);
  return blobs;
}

}  // namespace tensormill::storage
