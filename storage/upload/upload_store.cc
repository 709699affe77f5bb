#include "storage/upload/upload_store.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/base/error.h"
#include "storage/catalog/uuid7.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kFinished = "finished";
constexpr std::string_view kOwner = "owner";
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

/// The first 48 bits of a UUIDv7.
int64_t created_ms(const std::string& id) {
  return static_cast<int64_t>(std::stoull(id.substr(0, 8) + id.substr(9, 4), nullptr, 16));
}

/// The digest of the blob and, behind a space, its size.
void read_end(const std::string& text, Upload& upload) {
  const size_t space = text.find(' ');
  upload.blob = Digest::parse(text.substr(0, space));
  if (!upload.blob) throw Error(ErrorCode::kCorrupt, "upload " + upload.id + " ended with a broken digest");
  if (space == std::string::npos) return;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + space + 1, end, upload.blob_bytes);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    throw Error(ErrorCode::kCorrupt, "upload " + upload.id + " ended with a broken size");
}

Error no_upload(const std::string& id) {
  return Error(ErrorCode::kNotFound, "there is no upload \"" + id + "\"");
}

}  // namespace

class UploadStore::Turn {
public:
  Turn(UploadStore& store, const std::string& id) : store_(store), id_(id) {
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
  UploadStore& store_;
  const std::string id_;
};

UploadStore::UploadStore(Env& env, std::string root, BlobStore& blobs, UploadOptions options,
                         std::function<int64_t()> now_ms)
    : env_(env), root_(std::move(root)), blobs_(blobs), options_(options), now_ms_(std::move(now_ms)) {
  make_durable_folders(env_, root_ + "/uploads");
}

std::string UploadStore::folder_of(const std::string& id) const { return root_ + "/uploads/" + id; }

/// A file that goes with this, unless it is published.
class UploadStore::Temporary {
public:
  explicit Temporary(UploadStore& store)
      : store_(store), path_(store.temporary_path()), file_(store.env_.open(path_, OpenMode::kCreateNew)) {}
  ~Temporary() {
    file_.reset();
    if (is_published_) return;
    try {
      store_.env_.remove_file(path_);
    } catch (const Error&) {
      // The clean-up at the next start removes it; what led here is the error to report.
    }
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void write(uint64_t offset, std::string_view bytes) { file_->write(offset, bytes); }
  /// Durable when it returns.
  void publish(const std::string& id, const std::string& name) {
    file_->sync();
    file_.reset();
    store_.env_.rename(path_, store_.folder_of(id) + "/" + name);
    is_published_ = true;
    store_.env_.sync_folder(store_.folder_of(id));
  }

private:
  UploadStore& store_;
  const std::string path_;
  std::unique_ptr<EnvFile> file_;
  bool is_published_ = false;
};

std::string UploadStore::temporary_path() {
  const std::lock_guard lock(mutex_);
  return root_ + "/tmp/upload-" + std::to_string(next_temporary_++);
}

Upload UploadStore::begin(const std::string& owner) {
  if (static_cast<int>(list().size()) >= options_.max_uploads) {
    throw Error(ErrorCode::kUnavailable,
                "there are " + std::to_string(options_.max_uploads) + " uploads already");
  }
  Upload upload;
  upload.id = make_uuid7(now_ms_());
  upload.created_ms = created_ms(upload.id);
  upload.owner = owner;
  env_.make_folder(folder_of(upload.id));
  try {
    if (!owner.empty()) put_file(upload.id, std::string(kOwner), owner);
    env_.sync_folder(root_ + "/uploads");
  } catch (const Error&) {
    try {
      remove_files(upload.id);
    } catch (const Error&) {
      // An upload that nobody knows of goes when it is too old.
    }
    throw;
  }
  return upload;
}

Upload UploadStore::read(const std::string& id) {
  if (!is_uuid7(id) || !env_.exists(folder_of(id))) throw no_upload(id);
  Upload upload;
  upload.id = id;
  upload.created_ms = created_ms(id);
  const std::string folder = folder_of(id) + "/";
  for (const FolderEntry& entry : env_.list(folder_of(id))) {
    if (entry.name == kFinished) read_end(read_all(env_, folder + entry.name), upload);
    if (entry.name == kOwner) upload.owner = read_all(env_, folder + entry.name);
    // Sorted: what does not begin where the one before ended was left by a removal that broke off.
    if (entry.name == chunk_name(upload.size)) upload.size += env_.file_size(folder + entry.name);
  }
  if (upload.blob) upload.size = 0;
  return upload;
}

Upload UploadStore::find(const std::string& id) { return read(id); }

std::vector<Upload> UploadStore::list() {
  std::vector<Upload> uploads;
  for (const FolderEntry& entry : env_.list(root_ + "/uploads")) {
    if (!is_uuid7(entry.name)) continue;
    try {
      uploads.push_back(read(entry.name));
    } catch (const Error& error) {
      // One that was removed since the folder was listed is not there.
      if (error.code() != ErrorCode::kNotFound) throw;
    }
  }
  return uploads;
}

void UploadStore::put_file(const std::string& id, const std::string& name, std::string_view text) {
  Temporary file(*this);
  file.write(0, text);
  file.publish(id, name);
}

Upload UploadStore::append(const std::string& id, std::optional<uint64_t> offset, const ByteReader& next) {
  const Turn turn(*this, id);
  Upload upload = read(id);
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
    blobs_.ask_room(taken + count);
    chunk.write(taken, std::string_view(reinterpret_cast<const char*>(buffer.data()), count));
    taken += count;
  }
  if (taken == 0) return upload;
  chunk.publish(id, chunk_name(upload.size));
  upload.size += taken;
  return upload;
}

Digest UploadStore::finish(const std::string& id, const Digest& expected) {
  const Turn turn(*this, id);
  const Upload upload = read(id);
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
  put_file(id, std::string(kFinished), digest.text() + " " + std::to_string(upload.size));
  for (const FolderEntry& entry : env_.list(folder_of(id))) {
    if (is_chunk_name(entry.name)) env_.remove_file(folder_of(id) + "/" + entry.name);
  }
  return digest;
}

/// Last chunk first, so that what a crash leaves is the beginning of an upload.
void UploadStore::remove_files(const std::string& id) {
  const std::vector<FolderEntry> entries = env_.list(folder_of(id));
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    env_.remove_file(folder_of(id) + "/" + entry->name);
  }
  env_.remove_folder(folder_of(id));
  env_.sync_folder(root_ + "/uploads");
}

bool UploadStore::remove(const std::string& id) {
  if (!is_uuid7(id)) return false;
  const Turn turn(*this, id);
  if (!env_.exists(folder_of(id))) return false;
  remove_files(id);
  return true;
}

int UploadStore::expire() {
  int removed = 0;
  const int64_t oldest = now_ms_() - options_.lifetime.count();
  for (const Upload& upload : list()) {
    if (upload.created_ms >= oldest) continue;
    try {
      removed += remove(upload.id) ? 1 : 0;
    } catch (const Error& error) {
      // One that is being written to now is looked at the next time.
      if (error.code() != ErrorCode::kConflict) throw;
    }
  }
  return removed;
}

std::vector<Digest> UploadStore::roots() {
  std::vector<Digest> blobs;
  for (const Upload& upload : list()) {
    if (upload.blob) blobs.push_back(*upload.blob);
  }
  std::sort(blobs.begin(), blobs.end());
  return blobs;
}

}  // namespace tensormill::storage
