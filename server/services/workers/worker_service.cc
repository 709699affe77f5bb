#include "server/services/workers/worker_service.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <iterator>

#include "api/http/labels.h"
#include "api/http/scopes.h"
#include "runtime/base/error.h"
#include "runtime/base/error_json.h"
#include "runtime/base/file.h"
#include "server/jobs/job_attempt.h"
#include "server/services/jobs/carried_work.h"
#include "server/services/jobs/compile_action.h"
#include "server/services/store/blob_content.h"
#include "server/services/store/package_service.h"
#include "server/services/workers/worker_finish.h"
#include "server/services/workers/worker_rows.h"

namespace tensormill::server {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Workers that nobody heard for so long are forgotten.
constexpr int64_t kKeepMs = int64_t{7} * 86'400'000;
/// How often at most a heartbeat is written into the worker's row.
constexpr std::chrono::seconds kHeardEvery{5};
/// Of the maps that save writes: past it they are emptied, and what they saved is written once more.
constexpr size_t kMostKept = 20'000;

std::string owner_of(const services::CallContext& context, const std::string& worker) {
  return std::string(storage::kRemoteOwner) + context.submitter + "/" + worker;
}

/// The worker's name in such an owner.
std::string worker_of(const std::string& owner) { return owner.substr(owner.rfind('/') + 1); }

storage::JobClaim claim_of(const storage::JobRow& job) { return {job.id, job.attempt, job.owner}; }

std::string lease_id(const storage::JobRow& job) { return job.id + "." + std::to_string(job.attempt); }

int64_t wall_clock_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<milliseconds>(since).count();
}

/// Whether a key with these scopes may lease jobs of a kind.
bool may_do(const std::vector<std::string>& scopes, const std::string& verb) {
  const char* scope = verb == "compile" ? "worker:compile" : "worker:measure";
  return http::grants(scopes, scope);
}

/// The labels that the worker is found by.
std::vector<std::string> labels_of(const services::WorkerOffer& offer,
                                   const std::vector<std::string>& scopes) {
  const bool all = http::grants(scopes, "admin");
  std::vector<std::string> granted = all ? offer.labels : http::granted_names(scopes, "label");
  for (const std::string& label : offer.labels) {
    if (std::find(granted.begin(), granted.end(), label) == granted.end())
      throw Error(ErrorCode::kForbidden, "the key does not grant the label " + label);
  }
  // Not more than it claims, where it claims any.
  if (!offer.labels.empty()) granted = offer.labels;
  if (granted.size() > http::kMaxLabels)
    throw Error(ErrorCode::kForbidden, "the key grants more than " + std::to_string(http::kMaxLabels) +
                                           " labels: the worker has to say which it is for");
  std::sort(granted.begin(), granted.end());
  return granted;
}

/// Bytes that somebody else keeps.
class SpanBody final : public http::BodySource {
public:
  explicit SpanBody(std::span<const std::byte> bytes) : left_(bytes), size_(bytes.size()) {}
  size_t read(std::span<std::byte> buffer) override {
    const size_t count = std::min(buffer.size(), left_.size());
    std::copy_n(left_.begin(), count, buffer.begin());
    left_ = left_.subspan(count);
    return count;
  }
  std::optional<uint64_t> length() const override { return size_; }

private:
  std::span<const std::byte> left_;
  const uint64_t size_;
};

}  // namespace

std::vector<WorkerWants> worker_wants(const services::WorkerOffer& offer,
                                      const std::vector<std::string>& scopes, bool is_same_compiler) {
  const std::vector<std::string> sets = http::label_sets(labels_of(offer, scopes));
  std::vector<WorkerWants> wants;
  bool may_any = false, knows_any = false;
  for (const std::string_view known : services::kWorkerVerbs) {
    const std::string verb(known);
    if (std::find(offer.verbs.begin(), offer.verbs.end(), verb) == offer.verbs.end()) continue;
    knows_any = true;
    if (!may_do(scopes, verb)) continue;
    may_any = true;
    if (verb == "compile" && is_same_compiler) wants.push_back({{verb}, sets});
    // What measures is for the machine that was named; without a name that is the server's own.
    if (verb != "compile" && sets.size() > 1) wants.push_back({{verb}, {sets.begin() + 1, sets.end()}});
  }
  if (!knows_any) throw Error(ErrorCode::kNotSupported, "no verb that the worker offers is known here");
  if (!may_any) throw Error(ErrorCode::kForbidden, "the key grants none of the worker's verbs");
  return wants;
}

WorkerServiceImpl::WorkerServiceImpl(jobs::JobQueue& queue, storage::BlobStore& blobs,
                                     BlobCollector& collector, StoreQuota& quota, StoreDesk& desk,
                                     const TrustedKeys& trusted, metrics::Registry& registry,
                                     WorkerServiceOptions options)
    : queue_(queue),
      catalog_(queue.catalog()),
      blobs_(blobs),
      collector_(collector),
      quota_(quota),
      desk_(desk),
      trusted_(trusted),
      registry_(registry),
      options_(std::move(options)),
      polls_(
          queue, options_.lease, [this](const std::string& owner) { return may_have_work(owner); },
          [this](const storage::JobRow& job) { return make_lease(job); }) {}

bool WorkerServiceImpl::may_have_work(const std::string& owner) {
  const std::optional<storage::WorkerRow> row = catalog_.find_worker(worker_of(owner));
  return row && row->state == "active";
}

storage::WorkerRow WorkerServiceImpl::met(const services::WorkerOffer& offer,
                                          const services::CallContext& context) {
  const std::string owner = owner_of(context, offer.name);
  const auto now = steady_clock::now();
  {
    std::unique_lock lock(mutex_);
    const auto found = heard_.find(owner);
    const bool is_known = found != heard_.end() && now - found->second.at < kHeardEvery &&
                          found->second.facts == offer.facts_json;
    lock.unlock();
    // Somebody may have drained it, or forgotten it.
    const auto row = is_known ? catalog_.find_worker(offer.name) : std::nullopt;
    if (row && row->caller == context.submitter) return *row;
  }
  storage::WorkerRow row =
      catalog_.put_worker({offer.name, context.submitter, offer.facts_json, offer.status_json}, kKeepMs);
  const std::lock_guard lock(mutex_);
  if (heard_.size() > kMostKept) heard_.clear();
  heard_[owner] = {now, offer.facts_json};
  return row;
}

void WorkerServiceImpl::lease(const services::WorkerOffer& offer, const services::CallContext& context,
                              services::Done<std::optional<services::WorkerLease>> done) {
  const bool is_same = offer.compiler == options_.compiler;
  std::vector<WorkerWants> wants = worker_wants(offer, context.scopes, is_same);
  if (wants.empty() && !is_same)
    throw Error(ErrorCode::kNotSupported,
                "the worker's compiler is " + offer.compiler + ", this server's is " + options_.compiler);
  const std::string owner = owner_of(context, offer.name);
  const storage::WorkerRow row = met(offer, context);
  if (row.state == "revoked") throw Error(ErrorCode::kForbidden, "the worker " + offer.name + " is revoked");
  if (offer.is_fresh && !catalog_.requeue_jobs_of(owner).empty()) queue_.changed();
  if (row.state == "drained") wants.clear();
  polls_.wait(std::move(wants), owner, std::chrono::seconds(offer.hold_s), std::chrono::seconds(offer.wait_s),
              context.cancelled, std::move(done));
}

void WorkerServiceImpl::leave(const services::WorkerLeave& leave, const services::CallContext& context) {
  const std::string owner = owner_of(context, leave.name);
  polls_.end_now(owner);
  if (leave.is_ended && !catalog_.requeue_jobs_of(owner).empty()) queue_.changed();
}

Json WorkerServiceImpl::inputs_of(const storage::JobRow& job) {
  const Json resolved = parse_json(job.resolved);
  Json inputs = Json::object();
  if (job.kind == "compile") {
    inputs["model"] = {{"digest", model_blob(catalog_, resolved).text()}};
    return inputs;
  }
  if (job.kind == "measure") {
    for (const auto& [name, digest] : resolved.at("blobs").items()) inputs[name] = {{"digest", digest}};
    return inputs;
  }
  const storage::PackageRow row = require_package(catalog_, resolved.at("package").get<std::string>());
  for (const storage::MemberRow& member : row.members) {
    if (is_archived(member.name)) inputs[member.name] = {{"digest", member.digest.text()}};
  }
  for (const char* name : {"inputs", "expected"}) {
    if (const auto named = resolved.find(name); named != resolved.end()) inputs[name] = {{"digest", *named}};
  }
  return inputs;
}

std::optional<services::WorkerLease> WorkerServiceImpl::make_lease(const storage::JobRow& job) {
  try {
    services::WorkerLease lease;
    lease.id = lease_id(job);
    lease.verb = job.kind;
    lease.inputs_json = inputs_of(job).dump();
    Json resolved = parse_json(job.resolved);
    if (job.kind == "compile" && !has_pending_records(resolved))
      lease.tuned_json = tuned_json(tuned_of(desk_.records(), resolved)).dump();
    if (resolved.contains("package"))
      catalog_.touch_package(Digest::parse(resolved.at("package").get<std::string>()).value());
    lease.resolved_json = resolved.dump();
    lease.lease_ms = options_.lease.count();
    return lease;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnavailable) {
      catalog_.release_job(claim_of(job), {error_to_json(error), std::nullopt, 1'000, false});
    } else {
      catalog_.finish_job(claim_of(job), {storage::JobState::kFailed, "", error_to_json(error)});
    }
    queue_.changed();
    return std::nullopt;
  }
}

storage::JobRow WorkerServiceImpl::held_job(const std::string& lease, const services::CallContext& context) {
  storage::JobRow job = live_job(lease);
  if (!job.owner.starts_with(owner_of(context, "")))
    throw Error(ErrorCode::kForbidden, "the lease " + lease + " is another key's");
  return job;
}

storage::JobRow WorkerServiceImpl::live_job(const std::string& lease) {
  const size_t dot = lease.rfind('.');
  int attempt = 0;
  const char* end = lease.data() + lease.size();
  const bool is_lease =
      dot != std::string::npos && std::from_chars(lease.data() + dot + 1, end, attempt).ptr == end;
  std::optional<storage::JobRow> job;
  if (is_lease) job = catalog_.find_job(lease.substr(0, dot));
  if (!job) throw Error(ErrorCode::kNotFound, "there is no lease \"" + lease.substr(0, 80) + "\"");
  if (job->state != storage::JobState::kRunning || job->attempt != attempt)
    throw Error(ErrorCode::kConflict, "the lease " + lease + " is over");
  return *job;
}

bool WorkerServiceImpl::is_due(const std::string& lease) {
  const std::lock_guard lock(mutex_);
  if (renewed_.size() > kMostKept) renewed_.clear();
  const auto now = steady_clock::now();
  const auto [found, is_new] = renewed_.try_emplace(lease, now);
  if (!is_new && now - found->second < options_.lease / 3) return false;
  found->second = now;
  return true;
}

void WorkerServiceImpl::heard(const std::string& owner, const std::optional<std::string>& status) {
  {
    const std::lock_guard lock(mutex_);
    if (heard_.size() > kMostKept) heard_.clear();
    const auto now = steady_clock::now();
    const auto [found, is_new] = heard_.try_emplace(owner, Heard{now, ""});
    if (!is_new && now - found->second.at < kHeardEvery) return;
    found->second.at = now;
  }
  std::optional<storage::WorkerRow> row = catalog_.find_worker(worker_of(owner));
  if (!row) return;
  if (status) row->status = *status;
  catalog_.put_worker(*row, kKeepMs);
}

int64_t WorkerServiceImpl::append_log(const storage::JobRow& job, const services::WorkerBeat& beat) {
  const std::string_view text = std::string_view(beat.log).substr(
      0, kMaxWorkerLog - std::min<uint64_t>(kMaxWorkerLog, static_cast<uint64_t>(beat.log_offset)));
  // Whichever server had the part before.
  if (options_.shares_logs)
    return catalog_.append_log(job.id, job.attempt, beat.log_offset, text).value_or(0);
  const std::lock_guard lock(logs_mutex_);
  jobs::WorkerPoolOptions place;
  place.folder = options_.logs;
  const std::string path = jobs::live_log_path(place, job);
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) throw_errno(errno, "cannot open " + path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_errno(errno, "cannot read " + path);
  // Another server, or this one before it was started again, had the rest: it comes once more.
  if (beat.log.empty() || beat.log_offset != status.st_size) return status.st_size;
  if (::lseek(file.get(), status.st_size, SEEK_SET) < 0) throw_errno(errno, "cannot extend " + path);
  write_all(file.get(), text, path);
  return status.st_size + static_cast<int64_t>(text.size());
}

services::WorkerBeatAnswer WorkerServiceImpl::beat(const std::string& lease, const services::WorkerBeat& beat,
                                                   const services::CallContext& context) {
  storage::JobRow job;
  try {
    job = held_job(lease, context);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kConflict) throw;
    return {};
  }
  services::WorkerBeatAnswer answer{true, job.cancel_requested, 0};
  answer.log_bytes = append_log(job, beat);
  std::vector<storage::JobEventRow> events;
  for (const services::WorkerBeat::Event& event : beat.events)
    events.push_back({0, event.type, event.data_json});
  if (!events.empty() || beat.progress_json || is_due(lease)) {
    const storage::HeartbeatResult kept =
        catalog_.heartbeat_job(claim_of(job), options_.lease.count(), beat.progress_json, events);
    answer.held = kept.held;
    answer.cancel = kept.cancel_requested;
    queue_.changed();
  }
  heard(job.owner, beat.status_json);
  return answer;
}

std::shared_ptr<http::Content> WorkerServiceImpl::blob(const std::string& lease, const std::string& digest,
                                                       const services::CallContext& context) {
  const Json inputs = inputs_of(held_job(lease, context));
  for (const Json& input : inputs) {
    if (input.at("digest").get<std::string>() == digest)
      return std::make_shared<BlobContent>(blobs_.open(*Digest::parse(digest), context.cancelled));
  }
  throw Error(ErrorCode::kNotFound, "the lease " + lease + " is not about the blob " + digest.substr(0, 80));
}

std::string WorkerServiceImpl::tuned(const std::string& lease, const std::vector<std::string>& kernels,
                                     const services::CallContext& context) {
  const storage::JobRow job = held_job(lease, context);
  if (job.kind != "compile") throw Error(ErrorCode::kConflict, "the lease " + lease + " compiles nothing");
  Json resolved = parse_json(job.resolved);
  const Tuned tuned = desk_.settled(resolved, kernels);
  return Json{{"resolved", resolved}, {"tuned", tuned_json(tuned)}}.dump();
}

bool WorkerServiceImpl::end_job(const storage::JobRow& job, http::BodySource& body,
                                const storage::RepeatKey& asked, MemoryShare* memory) {
  const WorkerEndPlace place{blobs_, trusted_, quota_, options_.folder, options_.max_output_bytes, memory};
  const WorkerEnd end = read_end(body, memory);
  const std::optional<Digest> log = read_log(end, body, place);
  if (end.state == "crashed")
    return catalog_.release_job(claim_of(job), {end.error, log, end.backoff_ms, true, asked});
  if (end.state == "gave_back" || (end.state == "cancelled" && !job.cancel_requested))
    return catalog_.release_job(claim_of(job), {end.error, log, end.backoff_ms, false, asked});
  storage::JobFinish finish;
  if (end.state == "succeeded") {
    finish = read_result(job, end, body, place);
  } else if (end.state == "failed" && !end.error.empty()) {
    finish.state = storage::JobState::kFailed;
    finish.error = end.error;
  } else if (end.state == "cancelled") {
    finish.state = storage::JobState::kCancelled;
  } else {
    throw Error(ErrorCode::kInvalidRequest, "no lease ends as \"" + end.state.substr(0, 40) + "\"");
  }
  finish.log = log;
  finish.done = asked;
  if (!catalog_.finish_job(claim_of(job), finish)) return false;
  const auto spent = static_cast<double>(std::max<int64_t>(wall_clock_ms() - job.started_ms, 0)) / 1e3;
  registry_.count("job_total", {{"kind", job.kind}, {"state", std::string(job_state_name(finish.state))}});
  registry_.observe("job_duration_seconds", {{"kind", job.kind}}, spent);
  return true;
}

void WorkerServiceImpl::finish(const std::string& lease, http::BodySource& body,
                               const services::CallContext& context) {
  finish_live(held_job(lease, context), lease, body, {}, context.memory.get());
}

void WorkerServiceImpl::import_results(http::BodySource& body, const services::CallContext& context) {
  quota_.check(body.length().value_or(1));
  QuotaBody bounded(body, quota_);
  const FileDescriptor file = blobs_.env().scratch_file(options_.folder);
  std::string part(size_t{1} << 20, '\0');
  while (const size_t count = bounded.read(std::as_writable_bytes(std::span(part))))
    write_all(file.get(), std::string_view(part).substr(0, count), "a result");
  const auto mapped = MappedFile::map(file.get(), "a result");
  const CarriedResult result = read_result_file(mapped->bytes(), trusted_);
  // The lease is over once this was done: a repeat would be told so, and not that it was its own doing.
  const storage::RepeatKey asked{context.submitter, context.idempotency_key, "results of " + result.lease};
  if (catalog_.was_done(asked)) return;
  SpanBody end(result.end);
  finish_live(live_job(result.lease), result.lease, end, asked, context.memory.get());
}

void WorkerServiceImpl::finish_live(const storage::JobRow& job, const std::string& lease,
                                    http::BodySource& body, const storage::RepeatKey& asked,
                                    MemoryShare* memory) {
  {
    CollectOnFailure cleanup(collector_);
    const storage::BlobHold hold(blobs_);
    if (!end_job(job, body, asked, memory))
      throw Error(ErrorCode::kConflict, "the lease " + lease + " is over");
    cleanup.succeeded();
  }
  {
    const std::lock_guard lock(mutex_);
    renewed_.erase(lease);
  }
  jobs::WorkerPoolOptions place;
  place.folder = options_.logs;
  std::error_code ignored;  // what stays is removed at the next start
  std::filesystem::remove(jobs::live_log_path(place, job), ignored);
  if (job.log) blobs_.release(std::span(&*job.log, 1));
  queue_.changed();
}

std::vector<storage::JobRow> WorkerServiceImpl::running_jobs() {
  storage::JobFilter filter;
  filter.state = storage::JobState::kRunning;
  std::vector<storage::JobRow> running;
  storage::PageRequest page{0, 500};
  do {
    auto found = catalog_.list_jobs(filter, page);
    running.insert(running.end(), std::make_move_iterator(found.items.begin()),
                   std::make_move_iterator(found.items.end()));
    page.cursor = found.next;
  } while (page.cursor != 0);
  return running;
}

services::WorkerInfo WorkerServiceImpl::info_of(const storage::WorkerRow& row,
                                                const std::vector<storage::JobRow>& running) {
  services::WorkerInfo info;
  info.name = row.name;
  info.key = row.caller;
  info.state = row.state;
  info.is_connected = is_worker_connected(row, options_.lease.count(), wall_clock_ms());
  info.facts_json = row.facts;
  info.status_json = row.status;
  info.created_at = {row.created_ms};
  info.seen_at = {row.seen_ms};
  const std::string owner = worker_owner(row);
  for (const storage::JobRow& job : running) {
    if (job.owner == owner) info.jobs.push_back(job.id);
  }
  return info;
}

services::Page<services::WorkerInfo> WorkerServiceImpl::list(const services::PageQuery& page) {
  const std::vector<storage::JobRow> running = running_jobs();
  services::Page<services::WorkerInfo> result;
  for (const storage::WorkerRow& row : catalog_.list_workers()) {
    if (row.name <= page.cursor) continue;
    if (static_cast<int>(result.items.size()) == page.limit) {
      result.next_cursor = result.items.back().name;
      break;
    }
    result.items.push_back(info_of(row, running));
  }
  return result;
}

services::WorkerInfo WorkerServiceImpl::get(const std::string& name) {
  const std::optional<storage::WorkerRow> row = catalog_.find_worker(name);
  if (!row) throw Error(ErrorCode::kNotFound, "there is no worker \"" + name + "\"");
  return info_of(*row, running_jobs());
}

services::WorkerInfo WorkerServiceImpl::set_state(const std::string& name, const std::string& state) {
  services::WorkerInfo info = get(name);
  catalog_.set_worker_state(name, state);
  const std::string owner = std::string(storage::kRemoteOwner) + info.key + "/" + name;
  if (state == "revoked") catalog_.requeue_jobs_of(owner);
  polls_.end(owner);
  queue_.changed();
  return get(name);
}

}  // namespace tensormill::server
