#include "storage/upload/folder_upload_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "runtime/base/error.h"
#include "storage/catalog/uuid7.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kFinished = "finished";
constexpr std::string_view kOwner = "owner";
constexpr std::string_view kKey = "key";
constexpr size_t kOffsetDigits = 20;
constexpr size_t kRead = 1 << 16;

std::string chunk_name(uint64_t offset) {
  const std::string digits = std::to_string(offset);
  return std::string(kOffsetDigits - digits.size(), '0') + digits;
}

bool is_chunk_name(const std::string& name) {
  return name.size() == kOffsetDigits &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string end_text(const Upload& upload) {
  return upload.blob->text() + " " + std::to_string(upload.blob_bytes) + " " +
         std::to_string(upload.since_ms);
}

/// As end_text; older programs wrote no time, and still older ones no size.
void read_end(const std::string& text, Upload& upload) {
  size_t space = text.find(' ');
  upload.blob = Digest::parse(text.substr(0, space));
  if (!upload.blob) throw Error(ErrorCode::kCorrupt, "upload " + upload.id + " ended with a broken digest");
  const auto read_number = [&](auto& number) {
    if (space == std::string::npos) return;
    const size_t next = text.find(' ', space + 1);
    const char* end = text.data() + std::min(next, text.size());
    const auto parsed = std::from_chars(text.data() + space + 1, end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end)
      throw Error(ErrorCode::kCorrupt, "upload " + upload.id + " ended with a broken number");
    space = next;
  };
  read_number(upload.blob_bytes);
  read_number(upload.since_ms);
}

Error no_upload(const std::string& id) {
  return Error(ErrorCode::kNotFound, "there is no upload \"" + id + "\"");
}

}  // namespace

int expire_uploads(UploadStore& store, int64_t oldest_ms) {
  int removed = 0;
  for (const Upload& upload : store.list()) {
    if (upload.since_ms >= oldest_ms) continue;
    try {
      removed += store.remove(upload.id) ? 1 : 0;
    } catch (const Error& error) {
      // One that is being written to now is looked at the next time.
      if (error.code() != ErrorCode::kConflict) throw;
    }
  }
  return removed;
}

int64_t upload_created_ms(const std::string& id) {
  return static_cast<int64_t>(std::stoull(id.substr(0, 8) + id.substr(9, 4), nullptr, 16));
}

class FolderUploadStore::Change {
public:
  Change(FolderUploadStore& store, std::string id) : store_(store), id_(std::move(id)) {}
  ~Change() {
    if (is_told_) return;
    const std::lock_guard lock(store_.mutex_);
    store_.uploads_[id_].reset();
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  /// It is now as this says; nothing: it is gone.
  void tell(const std::optional<Upload>& upload) {
    is_told_ = true;
    if (upload) return store_.learn(*upload);
    const std::lock_guard lock(store_.mutex_);
    store_.uploads_.erase(id_);
  }

private:
  FolderUploadStore& store_;
  const std::string id_;
  bool is_told_ = false;
};

class FolderUploadStore::Turn {
public:
  Turn(FolderUploadStore& store, const std::string& id) : store_(store), id_(id) {
    const std::lock_guard lock(store.mutex_);
    if (!store.busy_.insert(id).second) {
      throw Error(ErrorCode::kConflict, "upload " + id + " is being written to by another request");
    }
  }
  ~Turn() {
    const std::lock_guard lock(store_.mutex_);
    store_.busy_.erase(id_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

private:
  FolderUploadStore& store_;
  const std::string id_;
};

FolderUploadStore::FolderUploadStore(Env& env, std::string root, BlobStore& blobs, UploadOptions options,
                                     std::function<int64_t()> now_ms)
    : env_(env), root_(std::move(root)), blobs_(blobs), options_(options), now_ms_(std::move(now_ms)) {
  make_durable_folders(env_, root_ + "/uploads");
  for (const FolderEntry& entry : env_.list(root_ + "/uploads")) {
    if (is_uuid7(entry.name)) uploads_[entry.name] = read(entry.name);
  }
}

std::string FolderUploadStore::folder_of(const std::string& id) const { return root_ + "/uploads/" + id; }

/// A file that goes with this, unless it is published.
class FolderUploadStore::Temporary {
public:
  explicit Temporary(FolderUploadStore& store)
      : store_(store), path_(store.temporary_path()), file_(store.env_.open(path_, OpenMode::kCreateNew)) {}
  ~Temporary() {
    file_.reset();
    store_.writing_bytes_ -= written_;
    if (is_published_) return;
    try {
      store_.env_.remove_file(path_);
    } catch (const Error&) {
      // The clean-up at the next start removes it; what led here is the error to report.
    }
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void write(uint64_t offset, std::string_view bytes) {
    file_->write(offset, bytes);
    written_ += bytes.size();
    store_.writing_bytes_ += bytes.size();
  }
  /// Durable when it returns.
  void publish(const std::string& id, const std::string& name) {
    file_->sync();
    file_.reset();
    store_.env_.rename(path_, store_.folder_of(id) + "/" + name);
    is_published_ = true;
    store_.env_.sync_folder(store_.folder_of(id));
  }

private:
  FolderUploadStore& store_;
  const std::string path_;
  std::unique_ptr<EnvFile> file_;
  uint64_t written_ = 0;
  bool is_published_ = false;
};

std::string FolderUploadStore::temporary_path() {
  const std::lock_guard lock(mutex_);
  return root_ + "/tmp/upload-" + std::to_string(next_temporary_++);
}

std::optional<Upload> FolderUploadStore::begun_with(const std::string& owner, const std::string& key) {
  if (key.empty()) return std::nullopt;
  for (Upload& upload : list()) {
    if (upload.key == key && upload.owner == owner) return std::move(upload);
  }
  return std::nullopt;
}

Upload FolderUploadStore::begin(const std::string& owner, const std::string& key) {
  if (std::optional<Upload> begun = begun_with(owner, key)) return *std::move(begun);
  Upload upload;
  upload.id = make_uuid7(now_ms_());
  upload.created_ms = upload.since_ms = upload_created_ms(upload.id);
  upload.owner = owner;
  upload.key = key;
  {
    const std::lock_guard lock(mutex_);
    if (uploads_.size() >= static_cast<size_t>(options_.max_uploads)) {
      throw Error(ErrorCode::kUnavailable,
                  "there are " + std::to_string(options_.max_uploads) + " uploads already");
    }
    uploads_[upload.id] = upload;
  }
  Change change(*this, upload.id);
  env_.make_folder(folder_of(upload.id));
  try {
    if (!owner.empty()) put_file(upload.id, std::string(kOwner), owner);
    if (!key.empty()) put_file(upload.id, std::string(kKey), key);
    env_.sync_folder(root_ + "/uploads");
  } catch (const Error&) {
    try {
      remove_files(upload.id);
    } catch (const Error&) {
      // An upload that nobody knows of goes when it is too old.
    }
    throw;
  }
  change.tell(upload);
  return upload;
}

Upload FolderUploadStore::read(const std::string& id) {
  if (!is_uuid7(id) || !env_.exists(folder_of(id))) throw no_upload(id);
  Upload upload;
  upload.id = id;
  upload.created_ms = upload.since_ms = upload_created_ms(id);
  const std::string folder = folder_of(id) + "/";
  for (const FolderEntry& entry : env_.list(folder_of(id))) {
    if (entry.name == kFinished) read_end(read_all(env_, folder + entry.name), upload);
    if (entry.name == kOwner) upload.owner = read_all(env_, folder + entry.name);
    if (entry.name == kKey) upload.key = read_all(env_, folder + entry.name);
    // Sorted: what does not begin where the one before ended was left by a removal that broke off.
    if (entry.name == chunk_name(upload.size)) upload.size += env_.file_size(folder + entry.name);
  }
  if (upload.blob) upload.size = 0;
  return upload;
}

void FolderUploadStore::learn(const Upload& upload) {
  const std::lock_guard lock(mutex_);
  uploads_[upload.id] = upload;
}

Upload FolderUploadStore::known(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = uploads_.find(id);
    if (found == uploads_.end()) throw no_upload(id);
    if (found->second) return *found->second;
  }
  try {
    Upload upload = read(id);
    const std::lock_guard lock(mutex_);
    // Who changed it meanwhile knows better, and who removed it too.
    const auto found = uploads_.find(id);
    if (found == uploads_.end()) throw no_upload(id);
    if (!found->second) found->second = upload;
    return *found->second;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    const std::lock_guard lock(mutex_);
    uploads_.erase(id);
    throw;
  }
}

Upload FolderUploadStore::find(const std::string& id) { return known(id); }

std::vector<Upload> FolderUploadStore::list() {
  std::vector<std::string> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, upload] : uploads_) ids.push_back(id);
  }
  std::vector<Upload> uploads;
  for (const std::string& id : ids) {
    try {
      uploads.push_back(known(id));
    } catch (const Error& error) {
      // One that was removed meanwhile is not there.
      if (error.code() != ErrorCode::kNotFound) throw;
    }
  }
  return uploads;
}

UploadUsage FolderUploadStore::usage() {
  UploadUsage usage;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, upload] : uploads_) {
    ++usage.uploads;
    if (upload) usage.bytes += upload->size;
  }
  return usage;
}

uint64_t FolderUploadStore::stored_bytes() { return usage().bytes + writing_bytes_; }

void FolderUploadStore::put_file(const std::string& id, const std::string& name, std::string_view text) {
  Temporary file(*this);
  file.write(0, text);
  file.publish(id, name);
}

Upload FolderUploadStore::append(const std::string& id, std::optional<uint64_t> offset,
                                 const ByteReader& next) {
  const Turn turn(*this, id);
  Upload upload = known(id);
  if (upload.blob) throw Error(ErrorCode::kConflict, "upload " + id + " is finished");
  if (offset && *offset != upload.size) {
    throw Error(ErrorCode::kRangeNotSatisfiable, "the chunk begins at " + std::to_string(*offset) +
                                                     ", upload " + id + " has " +
                                                     std::to_string(upload.size) + " bytes");
  }
  Temporary chunk(*this);
  uint64_t taken = 0;
  std::array<std::byte, kRead> buffer;
  for (size_t count = next(buffer); count != 0; count = next(buffer)) {
    if (upload.size + taken + count > options_.max_bytes) {
      throw Error(ErrorCode::kTooLarge,
                  "the upload has more than " + std::to_string(options_.max_bytes) + " bytes");
    }
    blobs_.ask_room(count);
    chunk.write(taken, std::string_view(reinterpret_cast<const char*>(buffer.data()), count));
    taken += count;
  }
  if (taken == 0) return upload;
  Change change(*this, id);
  chunk.publish(id, chunk_name(upload.size));
  upload.size += taken;
  change.tell(upload);
  return upload;
}

Digest FolderUploadStore::finish(const std::string& id, const Digest& expected) {
  const Turn turn(*this, id);
  Upload upload = known(id);
  if (upload.blob) {
    if (*upload.blob == expected) return expected;
    throw Error(ErrorCode::kDigestMismatch, "upload " + id + " became " + upload.blob->text());
  }
  const BlobHold hold(blobs_);
  const auto writer = blobs_.writer({.form = BlobForm::kCompressed, .expected = expected});
  std::array<std::byte, kRead> buffer;
  for (uint64_t size = 0; size < upload.size;) {
    const auto chunk = env_.open(folder_of(id) + "/" + chunk_name(size), OpenMode::kRead);
    uint64_t offset = 0;
    for (size_t count = chunk->read(0, buffer); count != 0; count = chunk->read(offset, buffer)) {
      writer->write(std::string_view(reinterpret_cast<const char*>(buffer.data()), count));
      offset += count;
    }
    size += offset;
  }
  const Digest digest = writer->commit();
  Change change(*this, id);
  upload.blob = digest;
  upload.blob_bytes = std::exchange(upload.size, 0);
  upload.since_ms = now_ms_();
  put_file(id, std::string(kFinished), end_text(upload));
  for (const FolderEntry& entry : env_.list(folder_of(id))) {
    if (is_chunk_name(entry.name)) env_.remove_file(folder_of(id) + "/" + entry.name);
  }
  change.tell(upload);
  return digest;
}

/// Last chunk first, so that what a crash leaves is the beginning of an upload.
void FolderUploadStore::remove_files(const std::string& id) {
  const std::vector<FolderEntry> entries = env_.list(folder_of(id));
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    env_.remove_file(folder_of(id) + "/" + entry->name);
  }
  env_.remove_folder(folder_of(id));
  env_.sync_folder(root_ + "/uploads");
}

bool FolderUploadStore::remove(const std::string& id) {
  if (!is_uuid7(id)) return false;
  const Turn turn(*this, id);
  if (!env_.exists(folder_of(id))) return false;
  Change change(*this, id);
  remove_files(id);
  change.tell(std::nullopt);
  return true;
}

int FolderUploadStore::expire() { return expire_uploads(*this, now_ms_() - options_.lifetime.count()); }

std::vector<Digest> FolderUploadStore::roots() {
  std::vector<Digest> blobs;
  for (const Upload& upload : list()) {
    if (upload.blob) blobs.push_back(*upload.blob);
  }
  std::sort(blobs.begin(), blobs.end());
  return blobs;
}

}  // namespace tensormill::storage
