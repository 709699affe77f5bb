/// Where candidates run: never in the tuner's own process. The server implements this with a guarded child
/// (server/measure). Thread-safety: a measurer belongs to one thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/codegen/backend.h"
#include "compiler/plan/plan_builder.h"
#include "compiler/tune/records/record.h"
#include "compiler/tune/task.h"

namespace tensormill::tune {

struct MeasureOptions {
  int number = 1;               ///< runs a measurement at least
  int repeat = 3;               ///< samples
  double min_repeat_ms = 20;    ///< a measurement's runs are made more until it lasts so long
  double timeout_seconds = 10;  ///< of one candidate's runs, all samples together
  bool flush_cache = false;     ///< walk over memory larger than the caches before each run; number is then 1
  int threads = 1;
};

struct Measurement {
  TrialError error = TrialError::kNone;
  std::string message;          ///< of the error
  std::vector<double> seconds;  ///< of one run, one a measurement
};

/// A candidate that is to be run; all borrowed.
struct Run {
  const codegen::Object& object;
  const plan::KernelWorkspace& workspace;
};

class Measurer {
public:
  virtual ~Measurer() = default;
  /// The task of the candidates that follow, and what they run on; both are borrowed until the next call.
  virtual void set_task(const Task& task, const Workload& workload) = 0;
  /// Runs the candidate once, checks its outputs, and measures it.
  virtual Measurement measure(const codegen::Object& object, const plan::KernelWorkspace& workspace,
                              const MeasureOptions& options) = 0;
  /// The same of candidates of one task, in their order: `take` gets each, by its index, as soon as it
  /// is known. A measurer to which each way is long takes all of them along at once.
  virtual void measure_all(std::span<const Run> runs, const MeasureOptions& options,
                           const std::function<void(size_t, Measurement)>& take) {
    for (size_t i = 0; i < runs.size(); ++i) take(i, measure(runs[i].object, runs[i].workspace, options));
  }
};

}  // namespace tensormill::tune
