/// The kind "verify": a package runs once on given inputs, and its outputs are held against those of its
/// model, evaluated node by node. The server makes the reference, in children; the run is in a child beside
/// it, or is an item of its own (with "expected") that a worker with the labels leases, runs and compares.
/// Right is a result, {"package","outputs"} with the largest differences; wrong is Error(kWrongAnswer).
/// Thread-safety: as jobs::JobRunner.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "server/jobs/job_queue.h"
#include "server/jobs/job_runner.h"
#include "server/services/jobs/compile_steps.h"
#include "server/services/workers/work_desk.h"

namespace tensormill::server {

/// Of the run.
struct VerifyOptions {
  std::chrono::milliseconds timeout{30'000};
  uint64_t memory = uint64_t{8} << 30;
  int threads = 1;
};

/// Where the run is: of a worker's item, which has inputs and outputs of the reference with it.
class VerifyItemRunner final : public jobs::JobRunner {
public:
  VerifyItemRunner(WorkDesk& desk, VerifyOptions options) : desk_(desk), options_(options) {}
  std::string kind() const override { return "verify"; }
  storage::JobFinish run(jobs::JobContext& context) override;

private:
  WorkDesk& desk_;
  VerifyOptions options_;
};

/// Where the job is: makes the reference, and has it compared.
class VerifyRunner final : public jobs::JobRunner {
public:
  VerifyRunner(CompileTools tools, jobs::JobQueue& queue, VerifyOptions options)
      : tools_(std::move(tools)), queue_(queue), options_(options) {}
  std::string kind() const override { return "verify"; }
  bool is_elsewhere(const storage::JobRow& job) const override;
  storage::JobFinish run(jobs::JobContext& context) override;

private:
  CompileTools tools_;
  jobs::JobQueue& queue_;
  VerifyOptions options_;
};

/// The form in which the import child reads the model of a package at the shapes of given inputs: what the
/// package's metadata says of how it was compiled, without free dims.
Json reference_form(const package::Metadata& metadata, const Json& model_facts,
                    const std::map<std::string, Shape>& shapes);

}  // namespace tensormill::server
