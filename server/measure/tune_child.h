/// The child that tunes a model for a job: it searches and builds candidates, its parent has them run and
/// keeps the records. It starts no process and opens no file. Thread-safety: called once, from main.
#pragma once

#include <span>
#include <string>

#include "server/jobs/child_main.h"

namespace tensormill::measure {

/// {"target","opt_level","desired_layout","desired_layout_ops","tasks","trials","time_budget_s","tuner",
/// "autoscheduler","early_stopping","seed","threads","build_threads","number","repeat","min_repeat_ms","cpu",
/// "batches"} -> the report. Descriptors: the bundle's text and constants, the known records, the code, the
/// tensors, the pipe of answers. Events, each answered by a line of the pipe where that is said:
///   "tasks" [KEY…] -> {"own":N,"done":[KEY…]}: the known records are written, the job's own first N of them;
///     the tasks that need no more trials;
///   "measure" {"requests","timeout_s"} -> {"answers"}: MeasureHost's, in the same order; one at a time, or,
///     with "batches", some that were built together;
///   "record" {"line","task","name","ms","gflops","error","trial"}; "progress".
std::string child_tune(jobs::ChildChannel& channel, std::span<const std::string> arguments);

}  // namespace tensormill::measure
