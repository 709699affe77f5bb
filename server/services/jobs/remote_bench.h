/// Workers elsewhere as where a tune job's candidates and packages run: each batch is a job of kind "measure"
/// that workers with the labels lease. They bring numbers and outputs, which are compared here; what is made
/// of them holds for their kind of machine, under their labels, alone.
/// Thread-safety: belongs to the job's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/jobs/job_queue.h"
#include "server/services/jobs/tune_bench.h"
#include "storage/blob/blob_store.h"

namespace tensormill::server {

/// What asks for a measurement elsewhere.
struct RemoteBenchOptions {
  std::string on;      ///< labels
  std::string target;  ///< canonical
  int threads = 1;
};

class RemoteBench final : public TuneBench {
public:
  /// All borrowed. What an earlier attempt at the job still waits for is cancelled.
  RemoteBench(jobs::JobQueue& queue, storage::BlobStore& blobs, jobs::JobContext& context, TuneFiles files,
              RemoteBenchOptions options);

  /// The labels and the kind of machine: nothing that is measured here is taken for another's, whatever a
  /// worker says it is. Asks a worker, the first time.
  const std::string& cpu() override;
  bool takes_batches() const override { return true; }
  /// Throws what ended the job there; Error(kConflict) when another kind of machine has measured it than
  /// before, Error(kWrongAnswer) for an answer that is none, and for requests that name what the files do
  /// not have.
  Json measure(const Json& requests, double timeout_seconds) override;
  Json roof(const target::Target& target) override;
  PackageTiming benchmark(const PackageFiles& package, const BenchmarkRequest& request) override;

private:
  /// The result of a job of this form.
  Json ask(Json form);
  Json ask_for(const Json& requests, double timeout_seconds);
  /// The blob of a file's beginning, which the tuning child may shorten meanwhile: so it is read, never
  /// mapped. Throws Error(kWrongAnswer) where the file ends before.
  std::string stored(int fd, uint64_t bytes, const char* name);
  /// Writes the outputs that an answer came with to where its request has them.
  void take_outputs(const Json& request, const Json& answer, const storage::Blob& outputs) const;

  jobs::JobQueue& queue_;
  storage::BlobStore& blobs_;
  jobs::JobContext& context_;
  const TuneFiles files_;
  const RemoteBenchOptions options_;
  std::string cpu_;
  Json roof_;
};

}  // namespace tensormill::server
