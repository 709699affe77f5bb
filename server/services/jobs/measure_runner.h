/// The kind "measure", on a worker: batches of a tune job's candidates, or one of its packages. Machine code
/// comes from the server, whom the worker trusts with that, and runs in confined children; numbers and
/// outputs go back. Thread-safety: as jobs::JobRunner.
///
/// Resolved forms: {"blobs":{"code","tensors"},"requests","timeout_s"}, requests as measure::Exchange makes
/// them, about files that begin as the blobs; or {"blobs":{MEMBER…},"repeat","number","threads","profile",
/// "fill_mode","dims"}. Both have "target", "on" and "job". Results have "cpu" and "cores", and "answers"
/// with "outputs", or "timing" {"runs_ms","profile"?}. "outputs" is a blob of the distinct outputs of the
/// candidates, one behind the other; an answer names its own by its place, as "outputs".
#pragma once

#include <memory>
#include <string>

#include "compiler/target/target.h"
#include "runtime/parallel/thread_pool.h"
#include "server/jobs/job_runner.h"
#include "server/services/jobs/benchmark.h"
#include "server/services/workers/work_desk.h"
#include "storage/blob/blob_store.h"

namespace tensormill::server {

struct MeasureRunnerOptions {
  BenchmarkOptions benchmark;
  uint64_t max_tensor_bytes = uint64_t{16} << 30;        ///< of a batch
  std::shared_ptr<const jobs::ChildPolicy> policy = {};  ///< of the children that run candidates
  target::Target host;                                   ///< this machine
};

class MeasureRunner final : public jobs::JobRunner {
public:
  /// `blobs` gets the outputs.
  MeasureRunner(storage::BlobStore& blobs, WorkDesk& desk, parallel::ThreadPool& pool,
                MeasureRunnerOptions options)
      : blobs_(blobs), desk_(desk), pool_(pool), options_(std::move(options)) {}

  std::string kind() const override { return "measure"; }
  bool measures() const override { return true; }
  /// Throws Error(kNotSupported) for another kind of machine's code.
  storage::JobFinish run(jobs::JobContext& context) override;

private:
  Json run_candidates(jobs::JobContext& context, const Json& resolved);
  Json run_package(jobs::JobContext& context, const Json& resolved);

  storage::BlobStore& blobs_;
  WorkDesk& desk_;
  parallel::ThreadPool& pool_;
  const MeasureRunnerOptions options_;
};

}  // namespace tensormill::server
