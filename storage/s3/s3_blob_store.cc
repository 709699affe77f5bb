#include "storage/s3/s3_blob_store.h"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "storage/blob/blob_commit.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kBlobs = "blobs/sha256/";
constexpr std::string_view kStaging = "staging/";
constexpr std::string_view kOwner = "store-id";
constexpr size_t kRemovedAtOnce = 500;
/// Parts grow after so many: an upload has 10,000 at most.
constexpr size_t kSmallParts = 1000;
constexpr uint64_t kLargePart = 16;

std::string random_name() {
  std::random_device random;
  std::array<uint8_t, 16> bytes{};
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return hex_text(bytes);
}

}  // namespace

/// Tees what is written: into a file for the cache, and to the bucket, part by part.
class S3BlobStore::Writer final : public BlobWriter {
public:
  Writer(S3BlobStore& store, BlobOptions options)
      : BlobWriter(store, options), store_(store), client_(store.client_), path_(store.cache_.temporary()) {
    file_ = store_.env().open(path_, OpenMode::kCreateNew);
  }
  ~Writer() override { discard(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

private:
  void append(std::string_view stored) override {
    file_->write(written_, stored);
    written_ += stored.size();
    while (!stored.empty()) {
      // The last part is sent by publish, so that what fits into one part is one request.
      if (part_.size() == part_bytes()) send_part();
      const size_t size = std::min<size_t>(stored.size(), part_bytes() - part_.size());
      part_ += stored.substr(0, size);
      stored.remove_prefix(size);
    }
  }

  uint64_t part_bytes() const {
    return client_.options().part_bytes * (tags_.size() < kSmallParts ? 1 : kLargePart);
  }

  void send_part() {
    if (upload_.empty()) {
      key_ = store_.staging_key();
      upload_ = client_.begin_upload(key_);
    }
    tags_.push_back(client_.put_part(key_, upload_, static_cast<int>(tags_.size()) + 1, part_));
    part_.clear();
  }

  void publish(const BlobInfo& blob) override {
    const std::string key = key_of(blob.digest, blob.form);
    const bool replace = store_.is_damaged(blob.digest);
    const bool is_new = put(key, replace ? S3Condition::kAlways : S3Condition::kIfAbsent);
    // Somebody's broken copy, or that of another version of zstd: these bytes are known to be right.
    if (!is_new && !is_there(key, blob.stored_bytes)) put(key, S3Condition::kAlways);
    store_.set_damaged(blob.digest, false);
    if (blob.form == BlobForm::kPlain) forget_compressed(blob.digest);
    store_.index().put(blob);
    end_staging();
    file_.reset();
    try {
      store_.cache_.admit(path_, blob.digest, blob.form, false);
    } catch (const Error&) {
      // The blob is in the bucket; it is fetched when it is needed.
    }
  }

  bool put(const std::string& key, S3Condition condition) {
    if (upload_.empty() && tags_.empty()) return client_.put(key, part_, condition);
    if (!upload_.empty()) {
      if (!part_.empty()) send_part();
      client_.complete_upload(key_, upload_, tags_, S3Condition::kAlways);
      upload_.clear();
    }
    return client_.copy(key_, key, written_, condition);
  }

  bool is_there(const std::string& key, uint64_t bytes) {
    const std::optional<S3Object> object = client_.head(key);
    return object && object->bytes == bytes;
  }

  void forget_compressed(const Digest& digest) {
    const std::optional<BlobInfo> known = store_.index().find(digest);
    if (known && known->form == BlobForm::kCompressed)
      client_.remove({key_of(digest, BlobForm::kCompressed)});
  }

  void end_staging() {
    if (key_.empty()) return;
    try {
      if (!upload_.empty()) client_.abort_upload(key_, upload_);
      client_.remove({key_});
    } catch (const Error&) {
      // The sweep finds it later.
    }
  }

  void drop() override {
    if (!file_) return;
    end_staging();
    file_.reset();
    try {
      store_.env().remove_file(path_);
    } catch (const Error&) {
      // The clean-up at the next start removes it; the error that led here is the one to report.
    }
  }

  S3BlobStore& store_;
  S3Client& client_;
  const std::string path_;
  std::unique_ptr<EnvFile> file_;
  uint64_t written_ = 0;
  std::string part_;
  std::string key_, upload_;
  std::vector<std::string> tags_;
};

/// One thread at a time has the fetch of a blob.
class S3BlobStore::Fetch {
public:
  Fetch(S3BlobStore& store, const Digest& digest) : store_(store), digest_(digest) {
    std::unique_lock lock(store.mutex_);
    store.fetched_.wait(lock, [&] { return !store.fetching_.contains(digest); });
    store.fetching_.insert(digest);
  }
  ~Fetch() {
    {
      const std::lock_guard lock(store_.mutex_);
      store_.fetching_.erase(digest_);
    }
    store_.fetched_.notify_all();
  }
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;

private:
  S3BlobStore& store_;
  const Digest digest_;
};

S3BlobStore::S3BlobStore(Env& env, std::string root, const S3StoreOptions& options,
                         std::unique_ptr<HttpTransport> transport, std::unique_ptr<BlobIndex> index)
    : BlobStore(env, std::move(index)),
      transport_(std::move(transport)),
      credentials_(make_credentials(options.credentials, *transport_)),
      client_(options.s3, *transport_, *credentials_),
      cache_(env, std::move(root), options.cache_bytes) {
  claim(options.store_id);
  if (this->index().is_empty()) read_bucket();
  sweep_uploads();
}

S3BlobStore::~S3BlobStore() = default;

void S3BlobStore::claim(const std::string& store_id) {
  const std::string key(kOwner);
  if (client_.put(key, store_id, S3Condition::kIfAbsent)) return;
  std::string owner;
  client_.get(key, [&](uint64_t offset, std::string_view bytes) {
    constexpr size_t kMaxId = 256;
    owner.resize(std::min<uint64_t>(offset, kMaxId));
    owner += bytes.substr(0, kMaxId - owner.size());
  });
  if (owner == store_id) return;
  throw Error(ErrorCode::kInUse, "s3://" + client_.options().bucket + "/" + client_.options().prefix +
                                     " holds the blobs of another store (" + owner + "; this one is " +
                                     store_id + "); take another prefix");
}

void S3BlobStore::read_bucket() {
  client_.list(std::string(kBlobs), [&](const S3Object& object) {
    const size_t name_at = kBlobs.size() + 3;
    if (object.key.size() <= name_at) return;
    const auto name = parse_blob_name(std::string_view(object.key).substr(name_at));
    if (!name || object.key != key_of(name->first, name->second)) return;
    // Of two forms the plain one counts, and comes first.
    if (name->second == BlobForm::kCompressed && index().find(name->first)) return;
    index().put({name->first, name->second, object.bytes});
  });
}

std::string S3BlobStore::key_of(const Digest& digest, BlobForm form) {
  return std::string(kBlobs) + blob_path(digest, form);
}

std::string S3BlobStore::staging_key() { return std::string(kStaging) + random_name(); }

std::unique_ptr<BlobWriter> S3BlobStore::writer(BlobOptions options) {
  return std::make_unique<Writer>(*this, options);
}

std::optional<BlobInfo> S3BlobStore::ask(const Digest& digest) {
  if (index().is_shared()) return index().find(digest);
  for (const BlobForm form : {BlobForm::kPlain, BlobForm::kCompressed}) {
    const std::optional<S3Object> object = client_.head(key_of(digest, form));
    if (!object) continue;
    const BlobInfo blob{digest, form, object->bytes};
    index().put(blob);
    return blob;
  }
  index().erase(digest);
  return std::nullopt;
}

std::optional<BlobInfo> S3BlobStore::find(const Digest& digest) {
  const std::optional<BlobInfo> known = index().find(digest);
  return known ? known : ask(digest);
}

bool S3BlobStore::exists(const Digest& digest) { return find(digest).has_value(); }

bool S3BlobStore::is_damaged(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  return damaged_.contains(digest);
}

void S3BlobStore::set_damaged(const Digest& digest, bool damaged) {
  const std::lock_guard lock(mutex_);
  if (damaged) {
    damaged_.insert(digest);
  } else {
    damaged_.erase(digest);
  }
}

bool S3BlobStore::already_stored(const Digest& digest, BlobForm wanted) {
  const std::optional<BlobInfo> known = index().find(digest);
  if (!known || (wanted == BlobForm::kPlain && known->form != BlobForm::kPlain)) return false;
  if (is_damaged(digest)) return false;
  const std::optional<S3Object> object = client_.head(key_of(digest, known->form));
  return object && object->bytes == known->stored_bytes;
}

std::optional<std::string> S3BlobStore::download(const BlobInfo& blob, const std::stop_token& stop) {
  const std::string path = cache_.temporary();
  const std::unique_ptr<EnvFile> file = env().open(path, OpenMode::kCreateNew);
  try {
    const std::optional<uint64_t> size =
        client_.get(key_of(blob.digest, blob.form), [&](uint64_t offset, std::string_view bytes) {
          if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "fetch: the server stops");
          file->write(offset, bytes);
        });
    if (size) {
      file->truncate(*size);
      return path;
    }
  } catch (const Error&) {
    env().remove_file(path);
    throw;
  }
  env().remove_file(path);
  return std::nullopt;
}

std::shared_ptr<const Blob> S3BlobStore::fetch(const BlobInfo& blob, const std::stop_token& stop) {
  const Fetch turn(*this, blob.digest);
  if (auto cached = cache_.open(blob.digest, blob.form, !is_verified(blob.digest), stop)) {
    set_verified(blob.digest, true);
    return cached;
  }
  const std::optional<std::string> path = download(blob, stop);
  if (!path) return nullptr;
  try {
    auto fetched = cache_.admit(*path, blob.digest, blob.form, true, stop);
    set_verified(blob.digest, true);
    set_damaged(blob.digest, false);
    return fetched;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCorrupt) set_damaged(blob.digest, true);
    throw;
  }
}

std::shared_ptr<const Blob> S3BlobStore::open(const Digest& digest, const std::stop_token& stop) {
  std::optional<BlobInfo> blob = find(digest);
  if (blob) {
    if (auto opened = fetch(*blob, stop)) return opened;
    // Its other form has taken its place, or another replica has removed it.
    blob = ask(digest);
    if (blob) {
      if (auto opened = fetch(*blob, stop)) return opened;
    }
  }
  throw Error(ErrorCode::kNotFound, "no blob " + digest.text());
}

void S3BlobStore::verify(const Digest& digest) {
  set_verified(digest, false);
  cache_.erase(digest);
  open(digest);
}

std::vector<Digest> S3BlobStore::remove_stored(std::span<const Digest> blobs) {
  std::vector<Digest> gone;
  std::vector<std::string> keys;
  for (const Digest& digest : blobs) {
    if (index().find(digest)) gone.push_back(digest);
    for (const BlobForm form : {BlobForm::kPlain, BlobForm::kCompressed})
      keys.push_back(key_of(digest, form));
  }
  client_.remove(keys);
  for (const Digest& digest : blobs) {
    cache_.erase(digest);
    index().erase(digest);
    set_damaged(digest, false);
  }
  return gone;
}

size_t S3BlobStore::group_of(std::span<const BlobInfo> blobs) const {
  return std::min(blobs.size(), kRemovedAtOnce);
}

uint64_t S3BlobStore::sweep_uploads() {
  const int64_t oldest = client_.options().unix_seconds() - client_.options().staging_grace.count();
  uint64_t swept = 0;
  std::vector<S3Object> old;
  const auto note = [&](const S3Object& object) {
    if (object.modified < oldest) old.push_back(object);
  };
  client_.list_uploads("", note);
  for (const S3Object& object : old) client_.abort_upload(object.key, object.upload);
  swept += old.size();
  old.clear();
  client_.list(std::string(kStaging), note);
  std::vector<std::string> keys;
  for (const S3Object& object : old) keys.push_back(object.key);
  if (!keys.empty()) client_.remove(keys);
  return swept + keys.size();
}

void parse_s3_url(const std::string& url, S3Options& options) {
  constexpr std::string_view kScheme = "s3://";
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kUsage, "blobs " + url + " is no s3://BUCKET/PREFIX: " + why);
  };
  if (!url.starts_with(kScheme)) refuse("it does not begin with s3://");
  const std::string rest = url.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  options.bucket = rest.substr(0, slash);
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  if (options.bucket.size() < 3 || options.bucket.size() > 63 ||
      !std::all_of(options.bucket.begin(), options.bucket.end(), is_plain))
    refuse("a bucket has 3 to 63 characters a-z, 0-9, - and .");
  std::string prefix = slash < rest.size() ? rest.substr(slash + 1) : "";
  while (prefix.ends_with('/')) prefix.pop_back();
  // Some stores keep keys as paths.
  const auto has_dots = [](const std::string& path) {
    return path.find("/./") != std::string::npos || path.find("/../") != std::string::npos;
  };
  const bool fits = std::all_of(prefix.begin(), prefix.end(), [&](char c) {
    return is_plain(c) || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
  });
  if (!fits || prefix.find("//") != std::string::npos || has_dots("/" + prefix + "/") ||
      prefix.starts_with('/') || prefix.size() > 512)
    refuse("a prefix has characters A-Z, a-z, 0-9, -, ., _ and single slashes, 512 at most");
  options.prefix = prefix.empty() ? "" : prefix + "/";
}

}  // namespace tensormill::storage
