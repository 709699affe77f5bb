/// Logs of attempts that run in other processes, as files here: each is read from the source part by part,
/// and once, however many requests ask for it and however often. Thread-safety: all methods from many
/// threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/file.h"
#include "server/jobs/job_source.h"
#include "storage/env/env.h"

namespace tensormill::jobs {

/// A log that may be read while it grows, and after its job has ended: what is there stays as it is.
struct JobLog {
  FileDescriptor file;  ///< not valid when there is none
  uint64_t size = 0;
};

class SharedLogs {
public:
  /// Files have no name and are on the disk of `folder`, of `max_bytes` at most.
  SharedLogs(JobSource& source, storage::Env& env, std::string folder, uint64_t max_bytes)
      : source_(source), env_(env), folder_(std::move(folder)), max_bytes_(max_bytes) {}
  /// Of an attempt that runs: as much as was shared of it.
  JobLog open(const storage::JobRow& job);
  /// The job runs no more: what was opened stays.
  void forget(const std::string& job);

private:
  struct Copy {
    explicit Copy(const storage::JobRow& of) : job(of.id), attempt(of.attempt) {}
    const std::string job;
    const int attempt;
    std::mutex mutex;
    FileDescriptor file;
    uint64_t size = 0;
  };
  std::shared_ptr<Copy> take(const storage::JobRow& job);
  void read_on(const storage::JobRow& job, Copy& copy);

  JobSource& source_;
  storage::Env& env_;
  const std::string folder_;
  const uint64_t max_bytes_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Copy>> copies_;  ///< what was asked for last is last
};

}  // namespace tensormill::jobs
