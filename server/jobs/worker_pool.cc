#include "server/jobs/worker_pool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <list>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/jobs/job_attempt.h"
#include "storage/catalog/uuid7.h"

namespace tensormill::jobs {
namespace {

/// Jobs that wait for others' measurements at once; one more is waited for where it was claimed.
constexpr size_t kMostAway = 16;

}  // namespace

WorkerPool::WorkerPool(JobSource& source, storage::BlobStore& blobs, std::vector<JobRunner*> runners,
                       WorkerPoolOptions options)
    : source_(source),
      blobs_(blobs),
      runners_(std::move(runners)),
      options_(std::move(options)),
      shared_logs_(source_, blobs_.env(), options_.folder, options_.max_log_bytes),
      keeper_(source_, options_.lease, options_.clock != nullptr ? *options_.clock : steady_) {
  for (const JobRunner* runner : runners_)
    (runner->measures() ? measuring_ : kinds_).push_back(runner->kind());
  if (options_.owner.empty()) options_.owner = std::to_string(::getpid()) + "-" + storage::make_uuid7(0);
  std::filesystem::remove_all(options_.folder);
  std::filesystem::create_directories(options_.folder);
  source_.take_up(options_.backoff);
  for (int i = 0; i < options_.threads; ++i) {
    if (!kinds_.empty()) threads_.emplace_back([this](const std::stop_token& stop) { work(kinds_, stop); });
  }
  if (!measuring_.empty())
    threads_.emplace_back([this](const std::stop_token& stop) { work(measuring_, stop); });
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  join();
}

void WorkerPool::drain() {
  drained_.request_stop();
  join();
}

void WorkerPool::join() {
  const std::lock_guard lock(joining_);
  for (std::jthread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::work(const std::vector<std::string>& kinds, const std::stop_token& stop) {
  // Whichever comes first ends the wait for a job; a drain leaves the one that runs alone.
  std::stop_source no_more;
  const auto end = [&no_more] { no_more.request_stop(); };
  const std::stop_callback on_stop(stop, end), on_drain(drained_.get_token(), end);
  std::list<Away> away;  // at the end all of them are waited for
  while (!no_more.stop_requested()) {
    away.remove_if([](const Away& one) { return one.has_ended->load(); });
    try {
      const std::optional<storage::JobRow> job =
          source_.claim(kinds, options_.owner, options_.lease, no_more.get_token());
      if (job && away.size() < kMostAway && runner_of(*job).is_elsewhere(*job)) {
        away.push_back(send_away(*job, stop));
      } else if (job) {
        attempt(*job, stop);
      }
    } catch (const Error&) {
      // The store is full or broken just now, or the server is away. The lease of an attempt that ended so
      // runs out, and the job comes back.
      source_.pause(no_more.get_token());
    }
  }
}

WorkerPool::Away WorkerPool::send_away(const storage::JobRow& job, const std::stop_token& stop) {
  Away away;
  away.has_ended = std::make_shared<std::atomic<bool>>(false);
  away.thread = std::jthread([this, job, stop, has_ended = away.has_ended] {
    try {
      attempt(job, stop);
    } catch (const Error&) {
      // As in work(): the lease runs out, and the job comes back.
    }
    *has_ended = true;
  });
  return away;
}

JobRunner& WorkerPool::runner_of(const storage::JobRow& job) const {
  const auto runner = std::find_if(runners_.begin(), runners_.end(),
                                   [&](const JobRunner* any) { return any->kind() == job.kind; });
  TM_CHECK(runner != runners_.end(), "a job of kind " + job.kind + " was claimed");
  return **runner;
}

void WorkerPool::attempt(const storage::JobRow& job, const std::stop_token& stop) {
  JobRunner& runner = runner_of(job);
  bool succeeded = false;
  {
    JobAttempt attempt(source_, blobs_, gate_, keeper_, options_, job, stop);
    try {
      attempt.run(runner);
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
    if (options_.shares_logs) return shared_logs_.open(job);
  }
  shared_logs_.forget(job.id);
  if (!job.log) return {};
  const std::shared_ptr<const storage::Blob> blob = blobs_.open(*job.log);
  FileDescriptor file(::fcntl(blob->fd(), F_DUPFD_CLOEXEC, 0));
  if (!file.valid()) throw_errno(errno, "cannot open the log of job " + job.id);
  return {std::move(file), blob->size()};
}

}  // namespace tensormill::jobs
