/// A compile job: an import child turns the model into a graph bundle, a compile child turns that into the
/// members of a package, and the parent stores and publishes them. Thread-safety: as jobs::JobRunner.
#pragma once

#include <chrono>

#include "server/jobs/job_runner.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

struct CompileRunnerOptions {
  std::chrono::milliseconds import_timeout{120'000};
  uint64_t import_memory = uint64_t{4} << 30;
  std::chrono::milliseconds timeout{1'800'000};
  uint64_t memory = uint64_t{8} << 30;
  uint64_t max_model_bytes = uint64_t{16} << 30;
  int threads = 1;
};

class CompileRunner final : public jobs::JobRunner {
public:
  CompileRunner(storage::BlobStore& blobs, storage::Catalog& catalog, CompileRunnerOptions options)
      : blobs_(blobs), catalog_(catalog), options_(options) {}

  std::string kind() const override { return "compile"; }
  storage::JobFinish run(jobs::JobContext& context) override;

private:
  storage::BlobStore& blobs_;
  storage::Catalog& catalog_;
  CompileRunnerOptions options_;
};

}  // namespace tensormill::server
