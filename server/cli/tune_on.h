/// `tensormill tune … --on LABELS --server URL`: the server searches and builds, a worker with these labels
/// measures. Thread-safety: one thread.
#pragma once

#include <string>

#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/run_on.h"

namespace tensormill::cli {

/// What is tuned.
struct TuneOnRequest {
  std::string model;   ///< a file, which the server gets, or the name or id of a model that it has
  std::string output;  ///< records file, which is written anew
  Json job;            ///< the body of POST /v1/jobs, but for kind, model and on
};

/// The job's result. Progress goes to standard error, a line a change. Throws what the server says and what
/// ended the job.
Json tune_on(const RunOnArguments& arguments, const TuneOnRequest& request, const GlobalOptions& globals);

}  // namespace tensormill::cli
