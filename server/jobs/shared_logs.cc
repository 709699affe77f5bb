#include "server/jobs/shared_logs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/error.h"

namespace tensormill::jobs {
namespace {

/// Of a log, in memory at a time.
constexpr size_t kPart = size_t{64} << 10;
/// Whoever asks for another one has that of the one that nobody asked for the longest read anew.
constexpr size_t kMostCopies = 16;

}  // namespace

std::shared_ptr<SharedLogs::Copy> SharedLogs::take(const storage::JobRow& job) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(copies_.begin(), copies_.end(), [&](const auto& copy) { return copy->job == job.id; });
  std::shared_ptr<Copy> copy;
  if (found != copies_.end()) {
    if ((*found)->attempt == job.attempt) copy = *found;
    copies_.erase(found);
  }
  if (!copy) copy = std::make_shared<Copy>(job);
  if (copies_.size() >= kMostCopies) copies_.erase(copies_.begin());
  copies_.push_back(copy);
  return copy;
}

/// With the copy's mutex.
void SharedLogs::read_on(const storage::JobRow& job, Copy& copy) {
  while (copy.size < max_bytes_) {
    const size_t most = std::min<uint64_t>(kPart, max_bytes_ - copy.size);
    const std::string part = source_.shared_log(job, static_cast<int64_t>(copy.size), most);
    if (part.empty()) return;
    // A part that was not written to its end is written over.
    if (::lseek(copy.file.get(), static_cast<off_t>(copy.size), SEEK_SET) < 0)
      throw_errno(errno, "cannot extend the copy of a log");
    write_all(copy.file.get(), part, "the copy of a log");
    copy.size += part.size();
  }
}

JobLog SharedLogs::open(const storage::JobRow& job) {
  const std::shared_ptr<Copy> copy = take(job);
  const std::lock_guard lock(copy->mutex);
  if (!copy->file.valid()) copy->file = env_.scratch_file(folder_);
  read_on(job, *copy);
  FileDescriptor file(::fcntl(copy->file.get(), F_DUPFD_CLOEXEC, 0));
  if (!file.valid()) throw_errno(errno, "cannot open the log of job " + job.id);
  return {std::move(file), copy->size};
}

void SharedLogs::forget(const std::string& job) {
  const std::lock_guard lock(mutex_);
  std::erase_if(copies_, [&](const auto& copy) { return copy->job == job; });
}

}  // namespace tensormill::jobs
