/// What a worker's attempts ask of the store: blobs of their lease, by digest, and tuning records.
/// Thread-safety: as server::WorkDesk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/services/workers/work_desk.h"
#include "server/worker/remote_source.h"
#include "server/worker/server_link.h"
#include "storage/s3/blob_cache.h"

namespace tensormill::worker {

class RemoteDesk final : public server::WorkDesk {
public:
  /// `max_bytes`: of one blob.
  RemoteDesk(ServerLink& link, RemoteSource& source, storage::BlobCache& cache, uint64_t max_bytes)
      : link_(link), source_(source), cache_(cache), max_bytes_(max_bytes) {}

  std::shared_ptr<const storage::Blob> open_model(jobs::JobContext& context, const Json& resolved) override;
  server::Tuned tuned(jobs::JobContext& context, Json& resolved,
                      const std::vector<std::string>& kernels) override;
  std::shared_ptr<const storage::Blob> open_inputs(jobs::JobContext& context, const Json& resolved) override;
  std::shared_ptr<const storage::Blob> open_blob(jobs::JobContext& context, const Json& resolved,
                                                 const std::string& name) override;
  server::MemberBlobs open_members(jobs::JobContext& context, const Json& resolved) override;

private:
  std::shared_ptr<const storage::Blob> fetch(jobs::JobContext& context, const std::string& lease,
                                             const Digest& digest);

  ServerLink& link_;
  RemoteSource& source_;
  storage::BlobCache& cache_;
  const uint64_t max_bytes_;
};

}  // namespace tensormill::worker
