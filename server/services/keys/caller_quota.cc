#include "server/services/keys/caller_quota.h"

#include <algorithm>
#include <limits>
#include <map>

#include "runtime/base/error.h"

namespace tensormill::server {

namespace {

uint64_t bytes_of(const storage::Upload& upload) { return upload.blob ? upload.blob_bytes : upload.size; }

}  // namespace

std::vector<storage::Upload> CallerQuota::charged_uploads() {
  std::vector<storage::Upload> uploads = uploads_.list();
  std::vector<Digest> finished;
  for (const storage::Upload& upload : uploads) {
    if (upload.blob && !upload.owner.empty()) finished.push_back(*upload.blob);
  }
  const std::vector<Digest> models = catalog_.models_among(finished);
  std::erase_if(uploads, [&](const storage::Upload& upload) {
    return upload.owner.empty() ||
           (upload.blob && std::binary_search(models.begin(), models.end(), *upload.blob));
  });
  return uploads;
}

storage::CallerUse CallerQuota::sum_uses() {
  storage::CallerUse sum = catalog_.sum_uses();
  for (const storage::Upload& upload : charged_uploads()) sum.bytes += bytes_of(upload);
  return sum;
}

std::vector<storage::CallerUse> CallerQuota::uses() {
  std::map<std::string, storage::CallerUse> by_caller;
  for (storage::CallerUse& use : catalog_.list_uses()) by_caller[use.caller] = use;
  for (const storage::Upload& upload : charged_uploads()) {
    storage::CallerUse& use = by_caller[upload.owner];
    use.caller = upload.owner;
    use.bytes += bytes_of(upload);
  }
  std::vector<storage::CallerUse> uses;
  for (auto& [caller, use] : by_caller) uses.push_back(std::move(use));
  return uses;
}

uint64_t CallerQuota::remaining(const std::string& caller) {
  if (options_.max_bytes == 0) return std::numeric_limits<uint64_t>::max();
  for (const storage::CallerUse& use : uses()) {
    if (use.caller == caller) return options_.max_bytes - std::min(options_.max_bytes, use.bytes);
  }
  return options_.max_bytes;
}

void CallerQuota::refuse(const std::string& caller, uint64_t bytes) const {
  throw Error(ErrorCode::kQuotaExceeded, caller + " may have " + std::to_string(options_.max_bytes) +
                                             " bytes of models, packages and uploads, which is "
                                             "limits.bytes_per_key: " +
                                             std::to_string(bytes) + " more do not fit");
}

ChargedBody::ChargedBody(http::BodySource& inner, CallerQuota& quota, std::string caller)
    : inner_(inner), quota_(quota), caller_(std::move(caller)), remaining_(quota.remaining(caller_)) {
  const uint64_t announced = inner.length().value_or(0);
  if (announced > remaining_) quota_.refuse(caller_, announced);
}

size_t ChargedBody::read(std::span<std::byte> buffer) {
  const size_t count = inner_.read(buffer);
  taken_ += count;
  if (taken_ > remaining_) quota_.refuse(caller_, taken_);
  return count;
}

}  // namespace tensormill::server
