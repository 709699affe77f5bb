#include "storage/backup/store_copy.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/blob/zstd_stream.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/upload/folder_upload_store.h"
#include "storage/upload/store_roots.h"

namespace tensormill::storage {
namespace {

constexpr int kTries = 20;
constexpr size_t kPart = size_t{1} << 20;
/// SQLite's file format, section "WAL File Format": the header has salts that change when the log starts
/// over.
constexpr size_t kLogHeader = 32;

/// Calls `each` with the file's bytes, part by part.
template <typename Each>
void read_parts(Env& env, const std::string& path, const Each& each) {
  const std::unique_ptr<EnvFile> file = env.open(path, OpenMode::kRead);
  std::string part(kPart, '\0');
  for (uint64_t offset = 0;;) {
    const size_t count = file->read(offset, std::as_writable_bytes(std::span(part)));
    if (count == 0) return;
    each(offset, std::string_view(part).substr(0, count));
    offset += count;
  }
}

/// The digest of what was copied.
Digest copy_file(Env& env, const std::string& from, const std::string& to) {
  Hasher hasher;
  const std::unique_ptr<EnvFile> target = env.open(to, OpenMode::kCreate);
  target->truncate(0);
  read_parts(env, from, [&](uint64_t offset, std::string_view part) {
    target->write(offset, part);
    hasher.update(part);
  });
  target->sync();
  return hasher.finish();
}

Digest digest_of(Env& env, const std::string& path) {
  Hasher hasher;
  read_parts(env, path, [&](uint64_t, std::string_view part) { hasher.update(part); });
  return hasher.finish();
}

/// "" when there is no log, or an empty one.
std::string log_header(Env& env, const std::string& log) {
  try {
    std::string header(kLogHeader, '\0');
    header.resize(env.open(log, OpenMode::kRead)->read(0, std::as_writable_bytes(std::span(header))));
    return header;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    return "";
  }
}

/// Copies database and log one after the other; true when they belong together. Pages that a checkpoint
/// writes into the database meanwhile stand in the log as well, which is copied after them and overrides
/// them, unless it started over in between: then its salts changed. Without a log nothing may have changed at
/// all.
bool copy_database(Env& env, const std::string& from, const std::string& to) {
  const std::string log = from + "-wal";
  const std::string before = log_header(env, log);
  const Digest copied = copy_file(env, from, to);
  env.remove_file(to + "-wal");
  if (!before.empty()) copy_file(env, log, to + "-wal");
  if (log_header(env, log) != before) return false;
  return !before.empty() || digest_of(env, from) == copied;
}

/// The blobs that the catalog names, sorted. Opening it folds the log into the database.
std::vector<Digest> settle_catalog(Env& env, const std::string& path) {
  std::vector<Digest> named;
  std::vector<std::string> problems;
  {
    SqliteCatalog catalog(env, path);
    named = catalog.referenced_blobs();
    problems = catalog.check();
  }
  env.remove_file(path + ".lock");
  if (!problems.empty()) throw Error(ErrorCode::kCorrupt, "the copied catalog: " + problems.front());
  // Closing does not say that there was no room to fold it.
  if (env.exists(path + "-wal")) throw Error(ErrorCode::kDiskFull, "no room for the copied catalog");
  return named;
}

/// A store whose catalog and blobs are in one folder.
class FolderSource final : public StoreSource {
public:
  /// `scratch`: a folder for files without a name.
  FolderSource(Env& env, std::string from, std::string scratch)
      : env_(env), from_(std::move(from)), scratch_(std::move(scratch)) {}
  const std::string& name() const override { return from_; }
  bool copy_catalog(const std::string& path) override {
    return copy_database(env_, from_ + "/catalog.db", path);
  }
  bool keep(const Digest&) override { return true; }

  std::optional<Bytes> open(const Digest& digest) override {
    const std::string plain = from_ + "/blobs/sha256/" + digest.hex().substr(0, 2) + "/" + digest.hex();
    for (const BlobForm form : {BlobForm::kPlain, BlobForm::kCompressed}) {
      const bool compressed = form == BlobForm::kCompressed;
      const std::optional<FileDescriptor> file = open_file(compressed ? plain + ".zst" : plain);
      if (!file) continue;
      std::shared_ptr<const MappedFile> bytes = MappedFile::map(file->get(), plain);
      if (compressed) {
        const FileDescriptor unpacked = env_.scratch_file(scratch_);
        decompress(bytes->text(), unpacked.get(), plain);
        bytes = MappedFile::map(unpacked.get(), plain);
      }
      return Bytes{form, bytes, bytes->text()};
    }
    return std::nullopt;
  }

private:
  std::optional<FileDescriptor> open_file(const std::string& path) {
    try {
      return env_.open_descriptor(path);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      return std::nullopt;
    }
  }

  Env& env_;
  const std::string from_, scratch_;
};

class Copier {
public:
  Copier(Env& env, StoreSource& from, std::string to)
      : env_(env), from_(from), to_(std::move(to)), target_(env, to_), uploads_(env, to_, target_, {}, [] {
          return int64_t{0};
        }) {
    // Somebody may have uploaded to the copy while it was served.
    target_.keep_roots([this] { return store_roots(named_, uploads_); });
  }

  StoreCopy run() {
    for (int attempt = 1; !take(); ++attempt) {
      if (attempt == kTries)
        throw Error(ErrorCode::kUnavailable, from_.name() + " changes faster than it can be copied");
    }
    // Names that a copy before this one left behind may not be durable yet.
    std::set<std::string> shards;
    for (const Digest& digest : named_) shards.insert(to_ + "/blobs/sha256/" + digest.hex().substr(0, 2));
    for (const std::string& shard : shards) env_.sync_folder(shard);
    env_.sync_folder(to_ + "/blobs/sha256");
    env_.rename(incoming(), to_ + "/catalog.db");
    env_.sync_folder(to_);
    target_.collect();
    result_.blobs = named_.size();
    return result_;
  }

private:
  std::string incoming() const { return to_ + "/incoming.db"; }

  /// False when something was removed before it was copied.
  bool take() {
    if (!from_.copy_catalog(incoming())) return false;
    named_ = settle_catalog(env_, incoming());
    std::vector<Digest> missing;
    std::copy_if(named_.begin(), named_.end(), std::back_inserter(missing),
                 [&](const Digest& digest) { return !target_.exists(digest); });
    // All before the first: the copy of one may take long.
    const auto all = [&](const auto& step) { return std::all_of(missing.begin(), missing.end(), step); };
    return all([&](const Digest& digest) { return from_.keep(digest); }) &&
           all([&](const Digest& digest) { return copy_blob(digest); });
  }

  /// False when the store has it no more.
  bool copy_blob(const Digest& digest) {
    const std::optional<StoreSource::Bytes> found = from_.open(digest);
    if (found) write_blob(digest, found->form, found->bytes);
    return found.has_value();
  }

  void write_blob(const Digest& digest, BlobForm form, std::string_view bytes) {
    if (Digest::of(bytes) != digest)
      throw Error(ErrorCode::kCorrupt, "blob " + digest.text() + " of " + from_.name() + " has other bytes");
    const std::unique_ptr<BlobWriter> writer = target_.writer({.form = form});
    for (; !bytes.empty(); bytes.remove_prefix(std::min(kPart, bytes.size()))) {
      writer->write(bytes.substr(0, kPart));
      result_.bytes += std::min(kPart, bytes.size());
    }
    writer->commit();
    ++result_.copied;
  }

  Env& env_;
  StoreSource& from_;
  const std::string to_;
  FolderBlobStore target_;
  FolderUploadStore uploads_;
  std::vector<Digest> named_;
  StoreCopy result_;
};

}  // namespace

StoreCopy copy_store(Env& env, StoreSource& from, const std::string& to) {
  make_durable_folders(env, to);
  // Somebody may have served from the copy: what is in its log belongs to it.
  if (env.exists(to + "/catalog.db")) const SqliteCatalog folded(env, to + "/catalog.db");
  const std::unique_ptr<EnvLock> lock = env.lock(to + "/catalog.db.lock");
  return Copier(env, from, to).run();
}

StoreCopy copy_store(Env& env, const std::string& from, const std::string& to) {
  if (!env.exists(from + "/catalog.db"))
    throw Error(ErrorCode::kNotFound, from + " is no store: there is no catalog.db");
  FolderSource source(env, from, to + "/tmp");
  return copy_store(env, source, to);
}

}  // namespace tensormill::storage
