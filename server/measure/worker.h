/// The measurer of the tuner: a child of the own binary runs candidates, this side watches it. Object code
/// and tensors go through two memory files, requests through a pipe, answers through the child's channel. A
/// child that crashes, hangs or has run some hundred candidates is replaced.
/// Thread-safety: belongs to one thread (its child dies with that thread).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/tune/measure.h"
#include "server/jobs/child_process.h"

namespace tensormill::measure {

struct WorkerOptions {
  std::string program = "/proc/self/exe";  ///< has the subcommand child-measure
  int candidates = 300;                    ///< of one child
  bool confine = true;
};

class WorkerMeasurer : public tune::Measurer {
public:
  explicit WorkerMeasurer(WorkerOptions options = {});
  ~WorkerMeasurer() override;
  void set_task(const tune::Task& task, const driver::KernelReference& reference) override;
  tune::Measurement measure(const codegen::Object& object, const plan::KernelWorkspace& workspace,
                            const tune::MeasureOptions& options) override;
  /// Children started so far.
  int children() const { return children_; }

private:
  struct Region {
    int64_t offset = 0;
    int64_t bytes = 0;
    bool is_output = false;
  };
  void start_child();
  tune::Measurement await(const tune::MeasureOptions& options);
  tune::Measurement check(int32_t code);

  WorkerOptions options_;
  FileDescriptor code_, tensors_, requests_;
  std::unique_ptr<jobs::ChildProcess> child_;
  int left_ = 0;  ///< candidates that the child may still run
  int children_ = 0;
  const tune::Task* task_ = nullptr;
  const driver::KernelReference* reference_ = nullptr;
  std::vector<Region> regions_;
  std::string answer_;  ///< JSON
};

}  // namespace tensormill::measure
