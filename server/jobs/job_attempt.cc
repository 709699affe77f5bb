#include "server/jobs/job_attempt.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/error_json.h"
#include "runtime/base/json.h"

namespace tensormill::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// What must wake the wait for a child earlier kills it: a cancel, a shutdown, a lost lease.
constexpr milliseconds kLongestWait{10'000};

}  // namespace

std::string live_log_path(const WorkerPoolOptions& options, const storage::JobRow& job) {
  return options.folder + "/" + job.id + "-" + std::to_string(job.attempt) + ".log";
}

JobAttempt::JobAttempt(JobSource& source, storage::BlobStore& blobs, MeasureGate& gate, LeaseKeeper& keeper,
                       const WorkerPoolOptions& options, storage::JobRow job, std::stop_token stop)
    : source_(source),
      blobs_(blobs),
      gate_(gate),
      hold_(blobs),
      options_(options),
      job_(std::move(job)),
      claim_{job_.id, job_.attempt, job_.owner},
      stop_(std::move(stop)),
      folder_(options_.folder + "/" + job_.id + "-" + std::to_string(job_.attempt)),
      log_path_(live_log_path(options_, job_)),
      last_commit_(steady_clock::now()) {
  source_.set_kill(job_.id, [this] { kill(); });
  kept_.emplace(
      keeper, claim_, [this] { lose(); }, [this] { kill(); });
}

JobAttempt::~JobAttempt() {
  source_.clear_kill(job_.id);
  kept_.reset();
  std::error_code ignored;  // what stays is removed at the next start
  std::filesystem::remove_all(folder_, ignored);
  std::filesystem::remove(log_path_, ignored);
}

void JobAttempt::run(JobRunner& runner) {
  measures_ = runner.measures() && !runner.is_elsewhere(job_);
  try {
    // A cancel that came after the claim and before the constructor's hook is in the row alone.
    if (source_.is_cancelled(claim_)) kill();
    std::filesystem::create_directories(folder_);
    log_ = FileDescriptor(::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log_.valid()) throw_errno(errno, "cannot open " + log_path_);
    finish(runner.run(*this));
  } catch (const JobInterrupted& interruption) {
    interrupted(interruption);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnavailable) return put_off(error);
    finish({storage::JobState::kFailed, "", error_to_json(error)});
  } catch (const std::filesystem::filesystem_error& error) {
    const bool full = error.code() == std::errc::no_space_on_device;
    finish({storage::JobState::kFailed, "",
            error_to_json(Error(full ? ErrorCode::kDiskFull : ErrorCode::kIo, error.what()))});
  } catch (const std::exception& error) {
    finish({storage::JobState::kFailed, "", error_to_json(Error(ErrorCode::kInternal, error.what()))});
  }
}

void JobAttempt::finish(storage::JobFinish finish) {
  if (finish.state == storage::JobState::kFailed) log(finish.error);
  finish.log = store_log();
  commit();
  const bool held = source_.finish(claim_, finish);
  succeeded_ = held && finish.state == storage::JobState::kSucceeded;
  hold_.reset();
  source_.notify();
}

void JobAttempt::interrupted(const JobInterrupted& interruption) {
  switch (interruption.why()) {
    case Interruption::kLeaseLost:
      return;
    case Interruption::kCancelled:
      return finish({storage::JobState::kCancelled, "", ""});
    case Interruption::kShutdown:
      source_.release(claim_, {"", std::nullopt, 0, false});
      break;
    case Interruption::kCrashed: {
      const std::string error = error_to_json(*interruption.error());
      log(error);
      const int doublings = std::min(job_.attempt - 1, 9);
      source_.release(claim_, {error, store_log(), options_.backoff.count() << doublings, true});
      break;
    }
  }
  source_.notify();
}

void JobAttempt::put_off(const Error& error) {
  log(error_to_json(error));
  source_.release(claim_, {error_to_json(error), std::nullopt, options_.backoff.count(), false});
  source_.notify();
}

std::optional<Digest> JobAttempt::store_log() {
  const std::string path = log_path_;
  if (!log_.valid() || std::filesystem::file_size(path) == 0) return std::nullopt;
  const auto mapped = MappedFile::open(path);
  const std::string_view text = mapped->text().substr(0, options_.max_log_bytes);
  return blobs_.put(text, {.form = storage::BlobForm::kCompressed, .always = true});
}

void JobAttempt::log(std::string_view line) {
  if (log_.valid()) write_all(log_.get(), std::string(line) + "\n", log_path_);
}

void JobAttempt::progress(std::string_view json) {
  progress_ = std::string(json);
  event("progress", json);
}

void JobAttempt::event(std::string_view type, std::string_view json) {
  events_.push_back({0, std::string(type), std::string(json)});
  commit_if_due();
}

void JobAttempt::commit_if_due() {
  if (!events_.empty() && steady_clock::now() - last_commit_ >= options_.commit_every) commit();
}

void JobAttempt::share_log() {
  constexpr size_t kPart = size_t{64} << 10;
  if (!options_.shares_logs || !log_.valid()) return;
  std::string part(kPart, '\0');
  const FileDescriptor file(::open(log_path_.c_str(), O_RDONLY | O_CLOEXEC));
  while (file.valid() && shared_bytes_ < options_.max_log_bytes) {
    const size_t most = std::min<uint64_t>(part.size(), options_.max_log_bytes - shared_bytes_);
    const ssize_t count = ::pread(file.get(), part.data(), most, static_cast<off_t>(shared_bytes_));
    if (count <= 0) return;
    const std::string_view text(part.data(), static_cast<size_t>(count));
    const auto shared = source_.share_log(claim_, static_cast<int64_t>(shared_bytes_), text);
    // Not where this part ends when an earlier one was kept though the answer of the catalog was lost.
    if (!shared || static_cast<uint64_t>(*shared) <= shared_bytes_) return;
    shared_bytes_ = static_cast<uint64_t>(*shared);
  }
}

void JobAttempt::commit() {
  share_log();
  const storage::HeartbeatResult beat = source_.heartbeat(
      claim_, options_.lease, std::exchange(progress_, std::nullopt), std::exchange(events_, {}));
  last_commit_ = steady_clock::now();
  if (!beat.held) throw JobInterrupted(Interruption::kLeaseLost);
  if (beat.cancel_requested) {
    const std::lock_guard lock(child_mutex_);
    killed_ = true;
  }
  source_.notify();
}

void JobAttempt::check_stop() {
  bool lost = false, killed = false;
  {
    const std::lock_guard lock(child_mutex_);
    lost = lost_;
    killed = killed_;
  }
  if (lost) throw JobInterrupted(Interruption::kLeaseLost);
  if (killed) throw JobInterrupted(Interruption::kCancelled);
  if (stop_.stop_requested()) throw JobInterrupted(Interruption::kShutdown);
}

void JobAttempt::check_child_limits() {
  ChildProcess* child = nullptr;
  {
    const std::lock_guard lock(child_mutex_);
    child = child_;
  }
  // This thread alone sets it, and polls it.
  if (child != nullptr) child->check_limits();
}

void JobAttempt::keep_alive() {
  check_stop();
  check_child_limits();
  commit_if_due();
  check_stop();
}

void JobAttempt::set_child(ChildProcess* child) {
  const std::lock_guard lock(child_mutex_);
  child_ = child;
  if (child_ != nullptr && (killed_ || lost_)) child_->cancel();
}

void JobAttempt::kill() {
  const std::lock_guard lock(child_mutex_);
  killed_ = true;
  if (child_ != nullptr) child_->cancel();
}

std::unique_ptr<MeasureGate::Quiet> JobAttempt::quiet() {
  return std::make_unique<MeasureGate::Quiet>(gate_);
}

void JobAttempt::lose() {
  const std::lock_guard lock(child_mutex_);
  lost_ = true;
  if (child_ != nullptr) child_->cancel();
}

ChildSlots::SlotPtr JobAttempt::wait_for_slot(uint64_t memory) {
  constexpr milliseconds kLook{200};
  if (options_.slots == nullptr) return nullptr;
  if (measures_) return options_.slots->for_measuring(memory);
  ChildSlots::SlotPtr slot;
  while (!slot) {
    keep_alive();
    slot = options_.slots->for_job(memory, kLook, stop_);
  }
  return slot;
}

std::string JobAttempt::run_child(ChildSpec spec, const TakeEvent& take) {
  keep_alive();
  if (spec.folder.empty()) spec.folder = folder_;
  spec.policy = options_.policy;
  if (spec.log_fd < 0) spec.log_fd = log_.get();
  if (spec.limits.file_bytes == 0) spec.limits.file_bytes = uint64_t{1} << 34;
  const ChildSlots::SlotPtr slot = wait_for_slot(spec.limits.data_bytes);
  ChildProcess child(spec);
  const MeasureGate::Builder builder(gate_, measures_ ? nullptr : &child);
  set_child(&child);
  std::optional<ChildOutcome> outcome;
  try {
    outcome = supervise(child, take);
  } catch (const std::exception&) {
    set_child(nullptr);
    throw;
  }
  set_child(nullptr);
  last_child_ = {outcome->cpu_seconds, static_cast<int64_t>(outcome->max_resident_bytes)};
  log("child " + spec.command + ": " + std::to_string(outcome->cpu_seconds) + " s of CPU time, " +
      std::to_string(outcome->max_resident_bytes) + " bytes at most");
  if (outcome->end == ChildEnd::kOk) return outcome->result;
  keep_alive();
  if (outcome->end == ChildEnd::kCancelled) throw JobInterrupted(Interruption::kCancelled);
  if (outcome->end == ChildEnd::kSignal) throw JobInterrupted(Interruption::kCrashed, outcome->error);
  throw *outcome->error;
}

ChildOutcome JobAttempt::supervise(ChildProcess& child, const TakeEvent& take) {
  // A shutdown wakes the poll below by killing the child.
  const std::stop_callback on_stop(stop_, [&child] { child.cancel(); });
  const auto on_event = [&](const std::string& type, const std::string& json) {
    if (take && take(type, json)) return;
    if (type == "progress") {
      progress(json);
    } else if (type == "confined") {
      log("child confined: " + json);
    } else {
      event(type, json);
    }
  };
  while (true) {
    const milliseconds wait = events_.empty() ? kLongestWait : options_.commit_every;
    std::optional<ChildOutcome> outcome = child.poll(wait, on_event);
    if (outcome) return *outcome;
    commit_if_due();
    try {
      share_log();
    } catch (const Error&) {
      // The catalog is away just now; the next look tells it.
    }
  }
}

}  // namespace tensormill::jobs
