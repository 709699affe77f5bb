/// What a run in a child process (`child-run`, server/cli/children/child_run_command.cc) is given, for those
/// who start it. Thread-safety: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "api/services/package_service.h"
#include "runtime/base/file.h"
#include "server/jobs/child_process.h"
#include "server/services/store/package_archive.h"

namespace tensormill::server {

struct ChildRun {
  services::RunOptions options;  ///< its timeout and priority are the caller's business
  int threads = 1;
  uint64_t memory = 0;                   ///< bytes, of the process and of the run
  std::chrono::milliseconds timeout{0};  ///< of the run
  int nice = 0;
  std::vector<int64_t> dims = {};  ///< as of run_executor
};

/// Of the members in package::kMembers' order, borrowed.
std::vector<int> descriptors_of(const MemberBlobs& members);

/// `members` as above; `feed` holds the inputs and `answer` becomes the outputs, as NPZ. All are borrowed
/// until the child has started. The time limit of the process is the caller's to set.
jobs::ChildSpec child_run_spec(std::vector<int> members, const FileDescriptor& feed,
                               const FileDescriptor& answer, const ChildRun& run);

}  // namespace tensormill::server
