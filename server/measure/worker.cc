#include "server/measure/worker.h"

#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"

namespace tensormill::measure {

WorkerMeasurer::WorkerMeasurer(WorkerOptions options)
    : code_(memory_file("code")),
      tensors_(memory_file("tensors")),
      exchange_(code_.get(), tensors_.get()),
      host_(std::move(options), code_.get(), tensors_.get()) {}

void WorkerMeasurer::set_task(const tune::Task&, const tune::Workload& workload) {
  exchange_.set_workload(workload);
}

tune::Measurement WorkerMeasurer::measure(const codegen::Object& object,
                                          const plan::KernelWorkspace& workspace,
                                          const tune::MeasureOptions& options) {
  const tune::Run run{object, workspace};
  const std::vector<Json> requests = exchange_.requests(std::span(&run, 1), options);
  return exchange_.read(0, host_.measure(requests.at(0), options.timeout_seconds));
}

}  // namespace tensormill::measure
