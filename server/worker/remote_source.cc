#include "server/worker/remote_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "api/services/worker_service.h"
#include "runtime/base/error.h"
#include "runtime/base/error_json.h"
#include "runtime/base/file.h"
#include "server/jobs/job_attempt.h"
#include "server/services/store/package_archive.h"

namespace tensormill::worker {
namespace {

using std::chrono::milliseconds;

constexpr int kPollSeconds = 20;
/// Of the log in one heartbeat.
constexpr size_t kLogPart = size_t{64} << 10;
constexpr size_t kMostEvents = 500;
constexpr milliseconds kFirstPause{500}, kLongestPause{15'000};
/// For the answers to what waits after the server was told that this worker leaves: a server that answers
/// them not is not waited for.
constexpr milliseconds kLongestLeave{5'000};

bool is_uuid(const std::string& text) {
  constexpr size_t kLength = 36;
  if (text.size() != kLength) return false;
  for (size_t i = 0; i < kLength; ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    if (is_dash ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
}

/// The server speaks otherwise than agreed: it is left alone for a while.
Error strange(const std::string& what) {
  return Error(ErrorCode::kUnavailable, "the server's lease " + what);
}

/// As many bytes, all of them UTF-8: a part may end within a character, and a child may write anything.
std::string as_text(std::string part) {
  const bool sound = [&] {
    try {
      return !Json(part).dump().empty();
    } catch (const Json::exception&) {
      return false;
    }
  }();
  if (!sound)
    // ARM's char has no sign.
    std::replace_if(
        part.begin(), part.end(), [](char c) { return static_cast<unsigned char>(c) > 0x7f; }, '?');
  return part;
}

}  // namespace

RemoteSource::RemoteSource(ServerLink& link, storage::BlobStore& blobs, RemoteSourceOptions options)
    : link_(link), blobs_(blobs), options_(std::move(options)) {}

void RemoteSource::take_up(milliseconds) {
  const std::lock_guard lock(fresh_mutex_);
  fresh_ = true;
}

storage::JobRow RemoteSource::read_lease(const Json& lease, const std::vector<std::string>& kinds,
                                         const std::string& owner) {
  storage::JobRow job;
  Live live;
  try {
    live.item.lease = lease.at("id").get<std::string>();
    const size_t dot = live.item.lease.rfind('.');
    job.id = live.item.lease.substr(0, std::min(dot, live.item.lease.size()));
    const std::string attempt = dot == std::string::npos ? "" : live.item.lease.substr(dot + 1);
    // The name becomes part of paths.
    if (!is_uuid(job.id) || attempt.empty() || attempt.size() > 9 ||
        !std::all_of(attempt.begin(), attempt.end(), [](char c) { return c >= '0' && c <= '9'; }))
      throw strange("has no name of a job and an attempt");
    job.attempt = std::stoi(attempt);
    job.kind = lease.at("verb").get<std::string>();
    if (std::find(kinds.begin(), kinds.end(), job.kind) == kinds.end())
      throw strange("asks for \"" + job.kind.substr(0, 40) + "\", which was not offered");
    live.item.verb = job.kind;
    if (!lease.at("resolved").is_object()) throw strange("says not what is to be done");
    job.resolved = lease.at("resolved").dump();
    for (const auto& [name, input] : lease.at("inputs").items()) {
      const auto digest = Digest::parse(input.at("digest").get<std::string>());
      if (!digest) throw strange("names an input by no digest");
      live.item.inputs[name] = *digest;
    }
    if (!lease.at("tuned").is_null()) live.item.tuned = lease.at("tuned");
  } catch (const Json::exception& error) {
    throw strange(std::string("cannot be read: ") + error.what());
  }
  job.owner = owner;
  job.state = storage::JobState::kRunning;
  jobs::WorkerPoolOptions place;
  place.folder = options_.folder;
  live.log = jobs::live_log_path(place, job);
  const std::lock_guard lock(mutex_);
  if (live_.contains(job.id)) throw strange("is of a job that runs here already");
  live_[job.id] = std::move(live);
  return job;
}

Json RemoteSource::ask(const std::vector<std::string>& kinds, bool is_fresh, const std::stop_token& stop) {
  const Json offer = {{"protocol", services::kWorkerProtocol},
                      {"name", options_.name},
                      {"verbs", kinds},
                      {"labels", options_.labels},
                      {"compiler", options_.compiler},
                      {"facts", options_.facts},
                      {"status", options_.status()},
                      {"fresh", is_fresh},
                      {"wait_s", is_fresh ? 0 : kPollSeconds}};
  {
    const std::lock_guard lock(mutex_);
    if (is_leaving_) throw Error(ErrorCode::kCancelled, "this worker leaves");
    ++asking_;
  }
  const auto answered = [this] {
    const std::lock_guard lock(mutex_);
    --asking_;
    changed_.notify_all();
  };
  Json answer;
  try {
    answer = link_.post("/v1/workers/lease", offer, ServerLink::Kind::kPoll, stop);
  } catch (const Error& error) {
    answered();
    if (error.code() != ErrorCode::kCancelled) refuse(error);
    throw;
  }
  answered();
  if (!answer.is_object() || !answer.contains("lease")) throw strange("is missing");
  if (answer.value("protocol", Json()) != services::kWorkerProtocol) throw strange("is of another protocol");
  return std::move(answer["lease"]);
}

std::optional<storage::JobRow> RemoteSource::claim_carried(const std::vector<std::string>& kinds,
                                                           const std::string& owner,
                                                           const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const Json verb = options_.carried->value("verb", Json());
  const bool is_mine = verb.is_string() && std::find(kinds.begin(), kinds.end(), verb) != kinds.end();
  if (!is_mine || std::exchange(has_carried_, true)) {
    changed_.wait(lock, stop, [] { return false; });
    return std::nullopt;
  }
  lock.unlock();
  try {
    return read_lease(*options_.carried, kinds, owner);
  } catch (const Error& error) {
    lock.lock();
    refusal_ = error.message();
    lock.unlock();
    if (on_refusal_) on_refusal_();
    return std::nullopt;
  }
}

std::optional<storage::JobRow> RemoteSource::claim(const std::vector<std::string>& kinds,
                                                   const std::string& owner, milliseconds,
                                                   const std::stop_token& stop) {
  if (options_.carried) return claim_carried(kinds, owner, stop);
  {
    std::unique_lock lock(mutex_);
    if (is_leaving_) {
      changed_.wait(lock, stop, [] { return false; });
      return std::nullopt;
    }
  }
  // What ended attempts made was told, or is of no use to anybody.
  blobs_.collect_released();
  std::unique_lock fresh(fresh_mutex_);
  const bool is_fresh = fresh_;
  // Nobody asks before the server knows that what an earlier process had is lost.
  if (!is_fresh) fresh.unlock();
  Json lease;
  try {
    lease = ask(kinds, is_fresh, stop);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) return std::nullopt;
    throw;
  }
  fresh_ = is_fresh ? false : fresh_;
  if (is_fresh) fresh.unlock();
  bool is_leaving = false;
  {
    const std::lock_guard lock(mutex_);
    is_leaving = is_leaving_;
    if (std::exchange(failures_, 0) > 0) options_.tell(link_.url() + " answers again");
  }
  if (lease.is_null()) return std::nullopt;
  storage::JobRow job = read_lease(lease, kinds, owner);
  if (is_leaving) {
    release({job.id, job.attempt, owner}, {"", std::nullopt, 0, false});
    clear_kill(job.id);
    return std::nullopt;
  }
  options_.tell("job " + job.id + " (" + job.kind + "), attempt " + std::to_string(job.attempt) + ": leased");
  return job;
}

void RemoteSource::refuse(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (failures_++ == 0) options_.tell(error.message());
  switch (error.code()) {
    case ErrorCode::kForbidden:
    case ErrorCode::kUnauthorized:
    case ErrorCode::kForeignCode:
    case ErrorCode::kNotSupported:
    case ErrorCode::kNameTaken:
    case ErrorCode::kInvalidArgument:
      if (!refusal_.empty()) return;
      refusal_ = error.message();
      if (on_refusal_) on_refusal_();
      return;
    default:
      return;
  }
}

std::string RemoteSource::refusal() {
  const std::lock_guard lock(mutex_);
  return refusal_;
}

void RemoteSource::pause(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const milliseconds pause = std::min(kLongestPause, kFirstPause * (1 << std::clamp(failures_ - 1, 0, 5)));
  changed_.wait_for(lock, stop, pause, [] { return false; });
}

void RemoteSource::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_leaving_, true) || asking_ == 0) return;
  }
  try {
    link_.post("/v1/workers/leave", {{"name", options_.name}});
  } catch (const Error&) {
    // It is away, or knows nothing of this: what waits there is cut.
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kLongestLeave, [this] { return asking_ == 0; });
}

void RemoteSource::tell_end() {
  if (options_.carried) return;
  try {
    link_.post("/v1/workers/leave", {{"name", options_.name}, {"ended", true}});
  } catch (const Error&) {
    // Then leases run out, if there are any.
  }
}

void RemoteSource::give_up() { given_up_.request_stop(); }

LeasedItem RemoteSource::item(const std::string& job) {
  const std::lock_guard lock(mutex_);
  const auto live = live_.find(job);
  TM_CHECK(live != live_.end(), "a job that was not leased");
  return live->second.item;
}

Json RemoteSource::settle(const std::string& job, const std::vector<std::string>& kernels, Json& resolved) {
  const Json answer =
      link_.post("/v1/workers/leases/" + item(job).lease + "/kernels", Json{{"kernels", kernels}});
  if (!answer.is_object() || !answer.contains("resolved") || !answer.contains("tuned"))
    throw strange("has no tuning records");
  // It chooses records and nothing else.
  Json before = resolved, after = answer["resolved"];
  if (!after.is_object()) throw strange("has no tuning records");
  before.erase("tuning_records");
  Json rest = after;
  rest.erase("tuning_records");
  if (before != rest) throw strange("became one for other work");
  resolved = std::move(after);
  return answer["tuned"];
}

void RemoteSource::clear_kill(const std::string& id) {
  const std::lock_guard lock(mutex_);
  live_.erase(id);
}

std::string RemoteSource::next_log(Live& live, uint64_t& bytes) {
  std::string part(kLogPart, '\0');
  const FileDescriptor file(::open(live.log.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t count =
      file.valid() ? ::pread(file.get(), part.data(), part.size(), static_cast<off_t>(live.log_read)) : 0;
  part.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  bytes = part.size();
  return as_text(std::move(part));
}

storage::HeartbeatResult RemoteSource::heartbeat(const storage::JobClaim& claim, milliseconds,
                                                 const std::optional<std::string>& progress,
                                                 const std::vector<storage::JobEventRow>& events) {
  // Nobody hears of what was carried here before its end.
  if (options_.carried) return {true, false};
  Json beat = {{"status", options_.status()}};
  uint64_t bytes = 0;
  std::string lease;
  {
    const std::lock_guard lock(mutex_);
    const auto live = live_.find(claim.id);
    // It has ended, which the keeper of leases has not heard yet.
    if (live == live_.end() || live->second.gone) return {};
    Live& one = live->second;
    lease = one.item.lease;
    if (progress) one.progress = parse_json(*progress);
    for (const storage::JobEventRow& event : events)
      one.events.push_back({{"type", event.type}, {"data", parse_json(event.data)}});
    beat["log_offset"] = one.log_offset;
    beat["log"] = next_log(one, bytes);
    if (one.progress) beat["progress"] = *std::exchange(one.progress, std::nullopt);
    beat["events"] = std::exchange(one.events, Json::array());
  }
  Json answer;
  try {
    answer = link_.post("/v1/workers/leases/" + lease + "/heartbeat", beat);
    if (!answer.is_object()) throw strange("has a heartbeat of another form");
  } catch (const Error& error) {
    const bool is_over = error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kForbidden ||
                         error.code() == ErrorCode::kUnauthorized;
    // A server that is away, or strange: the work goes on, and what was to be told is told later.
    if (!is_over) return keep(claim, beat);
    answer = {{"held", false}};
  }
  return took(claim, beat, bytes, answer);
}

storage::HeartbeatResult RemoteSource::keep(const storage::JobClaim& claim, Json& beat) {
  const std::lock_guard lock(mutex_);
  const auto live = live_.find(claim.id);
  if (live == live_.end()) return {};
  Live& one = live->second;
  if (!one.progress && beat.contains("progress")) one.progress = std::move(beat["progress"]);
  Json events = std::move(beat["events"]);
  for (Json& event : one.events) events.push_back(std::move(event));
  // A server that is away for long need not hear each step of it.
  if (events.size() > kMostEvents)
    events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(events.size() - kMostEvents));
  one.events = std::move(events);
  return {true, false};
}

storage::HeartbeatResult RemoteSource::took(const storage::JobClaim& claim, const Json& beat, uint64_t bytes,
                                            const Json& answer) {
  const storage::HeartbeatResult result{answer.value("held", Json(false)) == Json(true),
                                        answer.value("cancel", Json(false)) == Json(true)};
  const std::lock_guard lock(mutex_);
  const auto live = live_.find(claim.id);
  if (live == live_.end()) return result;
  live->second.gone = !result.held;
  const Json has = answer.value("log_bytes", Json());
  if (!has.is_number_integer()) return result;
  const bool took_it = has == beat.at("log_offset").get<int64_t>() + static_cast<int64_t>(bytes);
  // A server that has less was started again, or is another one: it gets the log from its beginning.
  live->second.log_read = took_it ? live->second.log_read + bytes : has == 0 ? 0 : live->second.log_read;
  live->second.log_offset = has.get<int64_t>();
  return result;
}

bool RemoteSource::keep_trying(const std::string& lease, int fd, uint64_t size) {
  if (options_.carried) {
    options_.deliver(lease, fd, size);
    return true;
  }
  const auto until = std::chrono::steady_clock::now() + options_.patience;
  for (int tries = 1;; ++tries) {
    try {
      link_.post_file("/v1/workers/leases/" + lease + "/finish", fd, size, given_up_.get_token());
      return true;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kConflict || error.code() == ErrorCode::kNotFound ||
          error.code() == ErrorCode::kForbidden || error.code() == ErrorCode::kUnauthorized)
        return false;
      const bool may_mend =
          error.code() == ErrorCode::kUnavailable && std::chrono::steady_clock::now() < until;
      if (!may_mend || given_up_.stop_requested()) throw;
    }
    std::unique_lock lock(mutex_);
    failures_ = std::max(failures_, tries);
    lock.unlock();
    pause(given_up_.get_token());
  }
}

bool RemoteSource::send_end(const std::string& lease, const server::WorkerEnd& end,
                            const std::function<void(int)>& write_rest) {
  const FileDescriptor file = blobs_.env().scratch_file(options_.folder);
  write_all(file.get(), server::end_line(end), "the end of a lease");
  write_rest(file.get());
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  if (size < 0) throw_errno(errno, "cannot write the end of a lease");
  return keep_trying(lease, file.get(), static_cast<uint64_t>(size));
}

bool RemoteSource::end(const storage::JobClaim& claim, server::WorkerEnd end,
                       const std::optional<Digest>& log, const storage::PackageRow* package) {
  const LeasedItem leased = item(claim.id);
  const std::string& lease = leased.lease;
  const auto text = log ? blobs_.open(*log) : nullptr;
  end.log_bytes = text ? text->size() : 0;
  std::string code, signature;
  std::optional<server::PackageArchive> archive;
  if (package != nullptr) {
    Json dumps = Json::object();
    for (const storage::MemberRow& member : package->members) {
      if (member.name.starts_with(server::kCodePrefix))
        dumps[member.name.substr(server::kCodePrefix.size())] =
            std::string(blobs_.open(member.digest)->text());
    }
    code = dumps.dump(-1, ' ', false, Json::error_handler_t::replace);
    archive.emplace(blobs_, *package);
    for (const storage::MemberRow& member : package->members) {
      if (member.name == server::kSignatureName) signature = blobs_.open(member.digest)->text();
    }
    end.code_bytes = code.size();
    end.archive_bytes = archive->size() + signature.size();
  }
  std::shared_ptr<const storage::Blob> outputs;
  const bool computes = leased.verb == "run" || leased.verb == "measure";
  if (computes && end.state == "succeeded" && end.result.value("outputs", Json()).is_string()) {
    outputs = blobs_.open(Digest::parse(end.result.at("outputs").get<std::string>()).value());
    end.archive_bytes = outputs->size();
  }
  const auto write_rest = [&](int fd) {
    if (text) write_all(fd, text->text(), "log");
    write_all(fd, code, "code");
    if (outputs) write_all(fd, outputs->text(), "outputs");
    if (!archive) return;
    std::string part(size_t{1} << 20, '\0');
    for (uint64_t at = 0; at < archive->size();) {
      const size_t count = archive->read_at(at, std::as_writable_bytes(std::span(part)));
      write_all(fd, std::string_view(part).substr(0, count), "package archive");
      at += count;
    }
    write_all(fd, signature, "signature");
  };
  try {
    return send_end(lease, end, write_rest);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kCancelled) throw;
    if (error.code() == ErrorCode::kForeignCode) {
      // Nobody's job is to blame that this worker signs with the wrong key.
      refuse(error);
      return send_end(lease, {"gave_back", {}, "", {}, 1'000, 0, 0, 0}, [](int) {});
    }
    if (end.state == "failed") throw;
    // What came of it is refused, and would be again.
    return send_end(lease, {"failed", {}, error_to_json(error), {}, 0, 0, 0, 0}, [](int) {});
  }
}

bool RemoteSource::finish(const storage::JobClaim& claim, const storage::JobFinish& finish) {
  server::WorkerEnd end;
  end.state = storage::job_state_name(finish.state);
  if (!finish.result.empty()) end.result = parse_json(finish.result);
  end.error = finish.error;
  if (finish.resolved) end.resolved = parse_json(*finish.resolved);
  const bool held = this->end(claim, std::move(end), finish.log, finish.package ? &*finish.package : nullptr);
  options_.tell("job " + claim.id + ": " +
                (held ? std::string(storage::job_state_name(finish.state)) : "the lease was over"));
  return held;
}

bool RemoteSource::release(const storage::JobClaim& claim, const storage::JobRelease& release) {
  server::WorkerEnd end;
  end.state = release.counts ? "crashed" : "gave_back";
  end.error = release.error;
  end.backoff_ms = release.backoff_ms;
  const bool held = this->end(claim, std::move(end), release.log, nullptr);
  options_.tell("job " + claim.id + ": " + (release.counts ? "its child crashed" : "given back"));
  return held;
}

}  // namespace tensormill::worker
