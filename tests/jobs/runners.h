/// What the tests of the worker pool share. Test fixture.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "server/jobs/job_runner.h"

namespace tensormill::jobs {

inline constexpr std::chrono::seconds kPatience{60};

/// A kind of job that is a function: "work", or "measure" where it measures.
class FunctionRunner final : public JobRunner {
public:
  explicit FunctionRunner(std::function<storage::JobFinish(JobContext&)> body, bool measures = false)
      : body_(std::move(body)), measures_(measures) {}
  std::string kind() const override { return measures_ ? "measure" : "work"; }
  bool measures() const override { return measures_; }
  bool is_elsewhere(const storage::JobRow& job) const override { return job.action_key.starts_with("away"); }
  storage::JobFinish run(JobContext& context) override { return body_(context); }

private:
  std::function<storage::JobFinish(JobContext&)> body_;
  bool measures_;
};

inline ChildSpec child(const std::string& command, std::vector<std::string> arguments = {}) {
  ChildSpec spec;
  spec.command = command;
  spec.arguments = std::move(arguments);
  return spec;
}

}  // namespace tensormill::jobs
