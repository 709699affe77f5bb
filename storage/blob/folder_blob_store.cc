#include "storage/blob/folder_blob_store.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "storage/blob/blob_commit.h"

namespace tensormill::storage {

FolderBlobStore::FolderBlobStore(Env& env, std::string root)
    : BlobStore(env, std::make_unique<MemoryBlobIndex>()), root_(std::move(root)) {
  make_durable_folders(env, root_ + "/blobs/sha256");
  // Nothing in tmp is ever promised, so its name needs no sync.
  remove_tree(env, root_ + "/tmp");
  env.make_folder(root_ + "/tmp");
  read_folders();
}

class FolderBlobStore::Writer final : public BlobWriter {
public:
  Writer(FolderBlobStore& store, std::string path, BlobOptions options)
      : BlobWriter(store, options), store_(store), path_(std::move(path)) {
    file_ = store_.env().open(path_, OpenMode::kCreateNew);
  }
  ~Writer() override { discard(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

private:
  void append(std::string_view stored) override {
    file_->write(written_, stored);
    written_ += stored.size();
  }

  void publish(const BlobInfo& blob) override {
    file_->sync();
    store_.make_shard(blob.digest);
    store_.env().rename(path_, store_.path_of(blob.digest, blob.form));
    store_.index().put(blob);
    if (blob.form == BlobForm::kPlain)
      store_.env().remove_file(store_.path_of(blob.digest, BlobForm::kCompressed));
    store_.env().sync_folder(store_.shard_folder(blob.digest));
    file_.reset();
  }

  void drop() override {
    if (!file_) return;
    file_.reset();
    try {
      store_.env().remove_file(path_);
    } catch (const Error&) {
      // The clean-up at the next start removes it; the error that led here is the one to report.
    }
  }

  FolderBlobStore& store_;
  const std::string path_;
  std::unique_ptr<EnvFile> file_;
  uint64_t written_ = 0;
};

std::string FolderBlobStore::shard_folder(const Digest& digest) const {
  return root_ + "/blobs/sha256/" + digest.hex().substr(0, 2);
}

std::string FolderBlobStore::path_of(const Digest& digest, BlobForm form) const {
  return root_ + "/blobs/sha256/" + blob_path(digest, form);
}

std::unique_ptr<BlobWriter> FolderBlobStore::writer(BlobOptions options) {
  return std::make_unique<Writer>(*this, root_ + "/tmp/blob-" + std::to_string(next_temporary_++), options);
}

std::optional<BlobForm> FolderBlobStore::find(const Digest& digest) {
  if (env().exists(path_of(digest, BlobForm::kPlain))) return BlobForm::kPlain;
  if (env().exists(path_of(digest, BlobForm::kCompressed))) return BlobForm::kCompressed;
  return std::nullopt;
}

bool FolderBlobStore::exists(const Digest& digest) { return find(digest).has_value(); }

void FolderBlobStore::make_shard(const Digest& digest) {
  const std::string folder = shard_folder(digest);
  const std::lock_guard lock(mutex_);
  if (durable_shards_.contains(folder)) return;
  env().make_folder(folder);
  env().sync_folder(parent_folder(folder));
  durable_shards_.insert(folder);
}

bool FolderBlobStore::already_stored(const Digest& digest, BlobForm wanted) {
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
  env().sync_folder(shard_folder(digest));
  return true;
}

std::shared_ptr<const Blob> FolderBlobStore::load(const Digest& digest, BlobForm form, bool check,
                                                  const std::stop_token& stop) {
  return load_blob(env(), path_of(digest, form), root_ + "/tmp", digest, form, check, stop);
}

std::shared_ptr<const Blob> FolderBlobStore::open(const Digest& digest, const std::stop_token& stop) {
  const std::optional<BlobForm> form = find(digest);
  if (!form) throw Error(ErrorCode::kNotFound, "no blob " + digest.text());
  const bool known = is_verified(digest);
  std::shared_ptr<const Blob> blob;
  try {
    blob = load(digest, *form, !known, stop);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound || *form == BlobForm::kPlain) throw;
    // A commit of the plain form has removed the compressed one since it was found.
    blob = load(digest, BlobForm::kPlain, !known, stop);
  }
  if (!known) set_verified(digest, true);
  return blob;
}

void FolderBlobStore::verify(const Digest& digest) {
  set_verified(digest, false);
  open(digest);
}

std::vector<Digest> FolderBlobStore::remove_stored(std::span<const Digest> blobs) {
  std::vector<Digest> gone;
  for (const Digest& digest : blobs) {
    const bool plain = env().remove_file(path_of(digest, BlobForm::kPlain));
    const bool compressed = env().remove_file(path_of(digest, BlobForm::kCompressed));
    index().erase(digest);
    if (plain || compressed) gone.push_back(digest);
  }
  if (!gone.empty()) env().sync_folder(shard_folder(gone.front()));
  return gone;
}

/// Those of one shard: one sync for all that goes in it.
size_t FolderBlobStore::group_of(std::span<const BlobInfo> blobs) const {
  const std::string shard = shard_folder(blobs.front().digest);
  const auto end = std::find_if(blobs.begin(), blobs.end(),
                                [&](const BlobInfo& blob) { return shard_folder(blob.digest) != shard; });
  return static_cast<size_t>(end - blobs.begin());
}

std::optional<uint64_t> FolderBlobStore::file_bytes(const std::string& path) {
  try {
    return env().file_size(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) return std::nullopt;
    throw;
  }
}

void FolderBlobStore::read_folders() {
  const std::string base = root_ + "/blobs/sha256";
  for (const FolderEntry& shard : env().list(base)) {
    if (!shard.is_folder) continue;
    // Sorted: of two forms of a blob the plain one comes first, and counts.
    std::optional<Digest> before;
    for (const FolderEntry& entry : env().list(base + "/" + shard.name)) {
      const auto blob = parse_blob_name(entry.name);
      if (!blob || !entry.name.starts_with(shard.name) || blob->first == before) continue;
      const std::optional<uint64_t> bytes = file_bytes(path_of(blob->first, blob->second));
      if (!bytes) continue;
      index().put({blob->first, blob->second, *bytes});
      before = blob->first;
    }
  }
}

}  // namespace tensormill::storage
