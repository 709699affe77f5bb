#include "server/services/store/store_service.h"

#include <filesystem>

#include "runtime/base/error.h"
#include "server/services/store/blob_content.h"
#include "storage/upload/store_roots.h"

namespace tensormill::server {

namespace {

services::UploadInfo info_of(const storage::Upload& upload) {
  return {upload.id, upload.size, {upload.created_ms}, upload.blob};
}

}  // namespace

size_t BlobBody::read(std::span<std::byte> buffer) {
  const size_t count = copy_from_blob(*blob_, position_, buffer);
  position_ += count;
  return count;
}

services::UploadInfo StoreServiceImpl::begin_upload(const services::CallContext& context) {
  quota_.check(1);
  if (callers_.remaining(context.submitter) == 0) callers_.refuse(context.submitter, 1);
  return info_of(uploads_.begin(context.submitter, context.idempotency_key));
}

services::UploadInfo StoreServiceImpl::get_upload(const std::string& id) {
  return info_of(uploads_.find(id));
}

services::UploadInfo StoreServiceImpl::append_upload(const std::string& id,
                                                     const services::UploadChunk& chunk,
                                                     http::BodySource& bytes,
                                                     const services::CallContext& context) {
  quota_.check(chunk.length.value_or(bytes.length().value_or(1)));
  ChargedBody charged(bytes, callers_, context.submitter);
  uint64_t taken = 0;
  const auto next = [&](std::span<std::byte> buffer) {
    const size_t count = charged.read(buffer);
    taken += count;
    const bool wrong = chunk.length && (taken > *chunk.length || (count == 0 && taken < *chunk.length));
    if (!wrong) return count;
    throw Error(ErrorCode::kInvalidRequest, "Content-Range tells of " + std::to_string(*chunk.length) +
                                                " bytes, the body has " +
                                                (count == 0 ? std::to_string(taken) : "more"));
  };
  return info_of(uploads_.append(id, chunk.offset, next));
}

services::UploadInfo StoreServiceImpl::finish_upload(const std::string& id, const Digest& digest) {
  uploads_.finish(id, digest);
  return info_of(uploads_.find(id));
}

void StoreServiceImpl::remove_upload(const std::string& id) {
  const std::optional<Digest> blob = uploads_.find(id).blob;
  if (!uploads_.remove(id)) throw Error(ErrorCode::kNotFound, "there is no upload \"" + id + "\"");
  collector_.collect_released(blob ? std::span(&*blob, 1) : std::span<const Digest>());
}

std::shared_ptr<http::Content> StoreServiceImpl::blob(const std::string& id) {
  const auto digest = Digest::parse(id);
  if (!digest) throw Error(ErrorCode::kNotFound, "\"" + id + "\" is no id of a blob");
  return std::make_shared<BlobContent>(blobs_.open(*digest));
}

services::StorageInfo StoreServiceImpl::storage() {
  services::StorageInfo info;
  const storage::BlobUsage stored = blobs_.usage();
  info.blobs = stored.blobs;
  info.blob_bytes = stored.stored_bytes;
  info.referenced_blobs = storage::count_store_roots(catalog_, uploads_);
  const storage::UploadUsage uploads = uploads_.usage();
  info.uploads = uploads.uploads;
  info.upload_bytes = uploads.bytes;
  info.quota_bytes = quota_.bytes();
  info.free_bytes = std::filesystem::space(root_).available;
  info.rows = {{"deployments", static_cast<uint64_t>(catalog_.count_deployments())},
               {"queued_jobs", static_cast<uint64_t>(catalog_.count_jobs(storage::JobState::kQueued))},
               {"running_jobs", static_cast<uint64_t>(catalog_.count_jobs(storage::JobState::kRunning))}};
  for (const storage::CallerUse& use : callers_.uses())
    info.callers.push_back({use.caller, use.live_jobs, use.bytes});
  return info;
}

services::GcReport StoreServiceImpl::collect(bool dry_run) {
  services::GcReport report;
  report.dry_run = dry_run;
  if (!dry_run) {
    report.uploads = static_cast<uint64_t>(uploads_.expire());
    report.packages = collector_.expire_packages();
  }
  const storage::Collected done = dry_run ? collector_.preview() : collector_.collect();
  report.blobs = done.blobs;
  report.bytes = done.stored_bytes;
  report.held = {{"referenced", storage::count_store_roots(catalog_, uploads_)},
                 {"being_published", done.held}};
  if (!dry_run) free_memory_.give_back();
  return report;
}

}  // namespace tensormill::server
