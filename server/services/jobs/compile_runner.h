/// A compile job: an import child makes a graph bundle of the model, a compile child makes of that the
/// members of a package, and the parent stores and publishes them. Thread-safety: as jobs::JobRunner.
#pragma once

#include <string>
#include <utility>

#include "server/jobs/job_runner.h"
#include "server/services/jobs/compile_steps.h"

namespace tensormill::server {

class CompileRunner final : public jobs::JobRunner {
public:
  explicit CompileRunner(CompileWork work) : work_(std::move(work)) {}

  std::string kind() const override { return "compile"; }
  storage::JobFinish run(jobs::JobContext& context) override;

private:
  CompileWork work_;
};

}  // namespace tensormill::server
