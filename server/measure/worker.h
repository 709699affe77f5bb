/// The measurer of a tuner that may start processes itself: the command line's. Object code and tensors go
/// through two memory files, requests through a pipe, answers through the child's channel.
/// Thread-safety: belongs to one thread (its child dies with that thread).
#pragma once

#include "compiler/tune/measure.h"
#include "server/measure/exchange.h"
#include "server/measure/host.h"

namespace tensormill::measure {

class WorkerMeasurer : public tune::Measurer {
public:
  explicit WorkerMeasurer(WorkerOptions options = {});
  void set_task(const tune::Task& task, const tune::Workload& workload) override;
  tune::Measurement measure(const codegen::Object& object, const plan::KernelWorkspace& workspace,
                            const tune::MeasureOptions& options) override;
  /// Children started so far.
  int children() const { return host_.children(); }

private:
  FileDescriptor code_, tensors_;
  Exchange exchange_;
  MeasureHost host_;
};

}  // namespace tensormill::measure
