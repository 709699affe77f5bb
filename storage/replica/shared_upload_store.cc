#include "storage/replica/shared_upload_store.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/base/error.h"
#include "storage/catalog/uuid7.h"

namespace tensormill::storage {
namespace {

constexpr size_t kReadPiece = 1 << 16;
constexpr size_t kWritePiece = size_t{1} << 20;

Upload upload_of(const UploadRow& row) {
  return {row.id,
          row.blob ? 0 : row.size,
          upload_created_ms(row.id),
          row.since_ms,
          row.blob,
          row.blob_bytes,
          row.owner,
          row.key};
}

}  // namespace

/// One request of this process at a time writes to an upload.
class SharedUploadStore::Turn {
public:
  Turn(SharedUploadStore& store, const std::string& id) : store_(store), id_(id) {
    const std::lock_guard lock(store.mutex_);
    if (!store.busy_.insert(id).second)
      throw Error(ErrorCode::kConflict, "upload " + id + " is being written to by another request");
  }
  ~Turn() {
    const std::lock_guard lock(store_.mutex_);
    store_.busy_.erase(id_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

private:
  SharedUploadStore& store_;
  const std::string id_;
};

SharedUploadStore::SharedUploadStore(SharedCatalog& catalog, BlobStore& blobs, UploadOptions options,
                                     std::function<int64_t()> now_ms)
    : catalog_(catalog), blobs_(blobs), options_(options), now_ms_(std::move(now_ms)) {}

UploadRow SharedUploadStore::require(const std::string& id) {
  std::optional<UploadRow> row;
  if (is_uuid7(id)) row = catalog_.find_upload(id);
  if (!row) throw Error(ErrorCode::kNotFound, "there is no upload \"" + id + "\"");
  return *std::move(row);
}

Upload SharedUploadStore::begin(const std::string& owner, const std::string& key) {
  UploadRow row;
  row.id = make_uuid7(now_ms_());
  row.since_ms = upload_created_ms(row.id);
  row.owner = owner;
  row.key = key;
  return upload_of(catalog_.begin_upload(row, options_.max_uploads));
}

Upload SharedUploadStore::find(const std::string& id) { return upload_of(require(id)); }

std::vector<Upload> SharedUploadStore::list() {
  std::vector<Upload> uploads;
  for (const UploadRow& row : catalog_.list_uploads()) uploads.push_back(upload_of(row));
  return uploads;
}

Upload SharedUploadStore::append(const std::string& id, std::optional<uint64_t> offset,
                                 const ByteReader& next) {
  const Turn turn(*this, id);
  const UploadRow row = require(id);
  if (row.blob) throw Error(ErrorCode::kConflict, "upload " + id + " is finished");
  if (offset && *offset != row.size) {
    throw Error(ErrorCode::kRangeNotSatisfiable, "the chunk begins at " + std::to_string(*offset) +
                                                     ", upload " + id + " has " + std::to_string(row.size) +
                                                     " bytes");
  }
  const BlobHold hold(blobs_);
  const auto writer = blobs_.writer({.form = BlobForm::kCompressed});
  std::array<std::byte, kReadPiece> buffer;
  for (size_t count = next(buffer); count != 0; count = next(buffer)) {
    if (row.size + writer->size() + count > options_.max_bytes) {
      throw Error(ErrorCode::kTooLarge,
                  "the upload has more than " + std::to_string(options_.max_bytes) + " bytes");
    }
    writer->write(std::string_view(reinterpret_cast<const char*>(buffer.data()), count));
  }
  const uint64_t taken = writer->size();
  if (taken == 0) return upload_of(row);
  const Digest digest = writer->commit();
  catalog_.add_chunk(id, {row.size, taken, digest});
  return upload_of(require(id));
}

Digest SharedUploadStore::join(const std::vector<ChunkRow>& chunks, const Digest& expected) {
  // What came in one piece is the blob already.
  if (chunks.size() == 1 && chunks[0].digest == expected && blobs_.keep(expected)) return expected;
  const auto writer = blobs_.writer({.form = BlobForm::kCompressed, .expected = expected});
  for (const ChunkRow& chunk : chunks) {
    const std::shared_ptr<const Blob> blob = blobs_.open(chunk.digest);
    for (std::string_view left = blob->text(); !left.empty();
         left.remove_prefix(std::min(kWritePiece, left.size())))
      writer->write(left.substr(0, kWritePiece));
  }
  return writer->commit();
}

Digest SharedUploadStore::finish(const std::string& id, const Digest& expected) {
  const Turn turn(*this, id);
  const UploadRow row = require(id);
  const auto check = [&](const UploadRow& finished) {
    if (*finished.blob == expected) return expected;
    throw Error(ErrorCode::kDigestMismatch, "upload " + id + " became " + finished.blob->text());
  };
  if (row.blob) return check(row);
  const BlobHold hold(blobs_);
  const std::vector<ChunkRow> chunks = catalog_.list_chunks(id);
  const Digest digest = join(chunks, expected);
  const uint64_t size = chunks.empty() ? 0 : chunks.back().begin + chunks.back().size;
  if (!catalog_.finish_upload(id, size, digest, now_ms_())) {
    const UploadRow now = require(id);
    if (now.blob) return check(now);
    throw Error(ErrorCode::kConflict, "upload " + id + " is being written to by another request");
  }
  std::vector<Digest> released;
  for (const ChunkRow& chunk : chunks) released.push_back(chunk.digest);
  blobs_.release(released);
  return digest;
}

bool SharedUploadStore::remove(const std::string& id) {
  if (!is_uuid7(id)) return false;
  const Turn turn(*this, id);
  std::vector<Digest> released;
  for (const ChunkRow& chunk : catalog_.list_chunks(id)) released.push_back(chunk.digest);
  const bool removed = catalog_.remove_upload(id);
  blobs_.release(released);
  return removed;
}

int SharedUploadStore::expire() { return expire_uploads(*this, now_ms_() - options_.lifetime.count()); }

std::vector<Digest> SharedUploadStore::roots() { return catalog_.upload_blobs(); }

UploadUsage SharedUploadStore::usage() {
  const UploadSums sums = catalog_.sum_uploads();
  return {sums.uploads, sums.bytes};
}

}  // namespace tensormill::storage
