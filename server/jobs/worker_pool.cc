#include "server/jobs/worker_pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/jobs/job_attempt.h"
#include "storage/catalog/uuid7.h"

namespace tensormill::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// The longest sleep of an idle worker; wake-ups come by notification, this only bounds the search for lost
/// leases.
constexpr milliseconds kLongestIdle{5'000};
/// After an error of the store itself.
constexpr milliseconds kStoreRetry{1'000};

JobLog kept_in_memory(const std::string& text) {
  FileDescriptor file(::memfd_create("job-log", MFD_CLOEXEC));
  if (!file.valid()) throw_errno(errno, "cannot make a file in memory");
  write_all(file.get(), text, "a log");
  return {std::move(file), text.size()};
}

}  // namespace

WorkerPool::WorkerPool(JobQueue& queue, storage::BlobStore& blobs, std::vector<JobRunner*> runners,
                       WorkerPoolOptions options)
    : queue_(queue),
      blobs_(blobs),
      runners_(std::move(runners)),
      options_(std::move(options)),
      keeper_(queue_, options_.lease, options_.clock != nullptr ? *options_.clock : steady_) {
  for (const JobRunner* runner : runners_)
    (runner->measures() ? measuring_ : kinds_).push_back(runner->kind());
  if (options_.owner.empty()) options_.owner = std::to_string(::getpid()) + "-" + storage::make_uuid7(0);
  std::filesystem::remove_all(options_.folder);
  std::filesystem::create_directories(options_.folder);
  queue_.catalog().requeue_orphans(storage::Orphans::kAtStart, options_.backoff.count());
  next_orphans_ = steady_clock::now() + options_.lease;
  for (int i = 0; i < options_.threads; ++i) {
    if (!kinds_.empty()) threads_.emplace_back([this](const std::stop_token& stop) { work(kinds_, stop); });
  }
  if (!measuring_.empty())
    threads_.emplace_back([this](const std::stop_token& stop) { work(measuring_, stop); });
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  for (std::jthread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::work(const std::vector<std::string>& kinds, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const uint64_t seen = queue_.version();
    try {
      const std::optional<storage::JobRow> job =
          queue_.catalog().claim_job(kinds, options_.owner, options_.lease.count());
      if (job) {
        queue_.changed();
        attempt(*job, stop);
      } else {
        idle(kinds, seen, stop);
      }
    } catch (const Error&) {
      // The store is full or broken just now. The lease of an attempt that ended so runs out, and the job
      // comes back.
      queue_.wait_for_change(queue_.version(), kStoreRetry, stop);
    }
  }
}

void WorkerPool::idle(const std::vector<std::string>& kinds, uint64_t seen, const std::stop_token& stop) {
  {
    const std::lock_guard lock(orphans_mutex_);
    if (steady_clock::now() >= next_orphans_) {
      next_orphans_ = steady_clock::now() + options_.lease;
      const bool found =
          !queue_.catalog().requeue_orphans(storage::Orphans::kExpired, options_.backoff.count()).empty();
      if (found) queue_.changed();
    }
  }
  milliseconds wait = std::min(kLongestIdle, options_.lease);
  if (const std::optional<int64_t> next = queue_.catalog().next_claim_in(kinds)) {
    wait = std::clamp(milliseconds(*next), milliseconds(1), wait);
  }
  queue_.wait_for_change(seen, wait, stop);
}

void WorkerPool::attempt(const storage::JobRow& job, const std::stop_token& stop) {
  const auto runner = std::find_if(runners_.begin(), runners_.end(),
                                   [&](const JobRunner* any) { return any->kind() == job.kind; });
  TM_CHECK(runner != runners_.end(), "a job of kind " + job.kind + " was claimed");
  bool succeeded = false;
  {
    JobAttempt attempt(queue_, blobs_, gate_, keeper_, options_, job, stop);
    try {
      attempt.run(**runner);
    } catch (const JobInterrupted&) {
      // The lease was lost at the very end: another attempt has the job.
    }
    succeeded = attempt.succeeded();
  }
  // What it stored and did not publish; the log of the attempt before.
  if (job.log) blobs_.release(std::span(&*job.log, 1));
  if (!succeeded && options_.collect) options_.collect();
}

JobLog WorkerPool::open_log(const storage::JobRow& job) {
  if (job.state == storage::JobState::kRunning) {
    const std::string path = live_log_path(options_, job);
    FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid() && errno != ENOENT) throw_errno(errno, "cannot open " + path);
    struct stat status {};
    if (file.valid() && ::fstat(file.get(), &status) != 0) throw_errno(errno, "cannot read " + path);
    if (file.valid()) return {std::move(file), static_cast<uint64_t>(status.st_size)};
    if (options_.shares_logs) return kept_in_memory(queue_.catalog().live_log(job.id, job.attempt));
  }
  if (!job.log) return {};
  const std::shared_ptr<const storage::Blob> blob = blobs_.open(*job.log);
  FileDescriptor file(::fcntl(blob->fd(), F_DUPFD_CLOEXEC, 0));
  if (!file.valid()) throw_errno(errno, "cannot open the log of job " + job.id);
  return {std::move(file), blob->size()};
}

}  // namespace tensormill::jobs
