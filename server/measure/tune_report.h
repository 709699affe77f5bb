/// What a tune job tells while it runs and at its end. Thread-safety: belongs to one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/tune/session.h"
#include "runtime/base/json.h"
#include "server/jobs/child_main.h"

namespace tensormill::measure {

/// A task that was tuned before: its name, calls, times from the records, 0 trials.
Json reused_task(const tune::Task& task, const target::Target& target,
                 const std::vector<tune::Record>& records);

class TuneReport {
public:
  /// `reused` is a list of reused_task.
  TuneReport(jobs::ChildChannel& channel, Json reused, double (*clock)())
      : channel_(channel), reused_(std::move(reused)), clock_(clock) {}
  /// Of the trials that the session counts, `known` are of other jobs and `own` of this one's earlier
  /// attempts.
  void start(const tune::TuneSession& session, int64_t known, int64_t own);
  /// A "record" event.
  void record(const tune::Record& record);
  /// A "progress" event: trials, estimated latency of the model, and the tasks that changed.
  void progress(const tune::TuneSession& session);
  Json result(const tune::TuneSession& session) const;

private:
  Json totals(const tune::TuneSession& session) const;

  jobs::ChildChannel& channel_;
  Json reused_;
  double (*clock_)();
  double start_ = 0;
  int64_t known_ = 0;
  int64_t own_ = 0;
  int64_t trial_ = 0;
  std::map<std::string, std::pair<std::string, double>> tasks_;  ///< name and FLOPs by key
  std::map<std::string, int64_t> reported_;                      ///< attempts by key
};

}  // namespace tensormill::measure
