/// The kind "run": a package runs once on given inputs, on a worker elsewhere. What comes of it is an NPZ
/// beside the result, {"package","outputs","timing"}. Thread-safety: as jobs::JobRunner.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "server/jobs/job_runner.h"
#include "server/services/workers/work_desk.h"
#include "storage/blob/blob_store.h"

namespace tensormill::server {

struct RunRunnerOptions {
  std::chrono::milliseconds timeout{30'000};
  uint64_t memory = uint64_t{8} << 30;
  uint64_t max_output_bytes = uint64_t{256} << 20;
  int threads = 1;
};

class RunRunner final : public jobs::JobRunner {
public:
  /// `blobs` gets the outputs.
  RunRunner(storage::BlobStore& blobs, WorkDesk& desk, RunRunnerOptions options)
      : blobs_(blobs), desk_(desk), options_(options) {}
  std::string kind() const override { return "run"; }
  storage::JobFinish run(jobs::JobContext& context) override;

private:
  storage::BlobStore& blobs_;
  WorkDesk& desk_;
  RunRunnerOptions options_;
};

}  // namespace tensormill::server
