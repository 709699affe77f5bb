/// What one caller may have: live jobs, and bytes of models, packages and uploads. Callers are API keys;
/// while keys are off, all are one. What is there is looked up when a body begins, so that bodies which
/// arrive at the same time can pass the bound together. Thread-safety: all methods from many threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/http/body.h"
#include "storage/catalog/catalog.h"
#include "storage/upload/upload_store.h"

namespace tensormill::server {

struct CallerQuotaOptions {
  int64_t max_live_jobs = 0;  ///< 0: no bound
  uint64_t max_bytes = 0;     ///< 0: no bound
};

class CallerQuota {
public:
  CallerQuota(storage::Catalog& catalog, storage::UploadStore& uploads, CallerQuotaOptions options)
      : catalog_(catalog), uploads_(uploads), options_(options) {}
  /// The caller with the bound that the catalog holds it to.
  storage::Submitter submitter(const std::string& caller) const { return {caller, options_.max_live_jobs}; }
  /// Bytes that the caller may still bring.
  uint64_t remaining(const std::string& caller);
  /// Of all callers who have anything, sorted by caller. The blob of a finished upload counts until a model
  /// is made of it or the upload goes.
  std::vector<storage::CallerUse> uses();
  /// Of all callers together, under the name ''. What it costs depends on live jobs and uploads alone, which
  /// are bounded.
  storage::CallerUse sum_uses();
  [[noreturn]] void refuse(const std::string& caller, uint64_t bytes) const;

private:
  /// Those whose bytes count for their owner.
  std::vector<storage::Upload> charged_uploads();

  storage::Catalog& catalog_;
  storage::UploadStore& uploads_;
  const CallerQuotaOptions options_;
};

/// A body that counts for a caller: Error(kQuotaExceeded) past what is allowed, before the first byte
/// when the announced length is (then the constructor throws). Borrows both.
class ChargedBody final : public http::BodySource {
public:
  ChargedBody(http::BodySource& inner, CallerQuota& quota, std::string caller);
  size_t read(std::span<std::byte> buffer) override;
  std::optional<uint64_t> length() const override { return inner_.length(); }

private:
  http::BodySource& inner_;
  CallerQuota& quota_;
  const std::string caller_;
  const uint64_t remaining_;
  uint64_t taken_ = 0;
};

}  // namespace tensormill::server
