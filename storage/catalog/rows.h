/// What the catalog keeps, as values. Texts named facts, request, resolved, progress, result, error, desired
/// and versions are JSON that the catalog does not read. Times are milliseconds since 1970 by the catalog's
/// clock. Thread-safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/digest.h"

namespace tensormill::storage {

template <typename T>
struct Page {
  std::vector<T> items;
  int64_t next = 0;  ///< cursor of the next page; 0: this was the last
};

struct PageRequest {
  int64_t cursor = 0;  ///< 0: from the start, which is the newest
  int limit = 50;
};

struct ModelRow {
  Digest id;
  std::vector<Digest> blobs = {};
  std::string facts = "{}";
  int64_t created_ms = 0;  ///< set by the catalog
  std::string owner = {};  ///< the caller who brought it first; "" for none
  uint64_t bytes = 0;      ///< that it counts for its owner
};

struct NameRow {
  std::string kind;
  std::string name;
  Digest id;
  int64_t updated_ms = 0;
};

/// A trial of a kernel: measured here, or imported. The texts are the tuner's; the catalog compares them.
struct TuningRecordRow {
  int64_t sequence = 0;  ///< order of arrival, set by the catalog
  Digest id;             ///< of the line
  std::string task;      ///< the kernel's key
  std::string target;
  std::string cpu;
  int threads = 1;
  std::string generator;  ///< the compiler that made the code
  bool imported = false;
  std::string job = {};  ///< that measured it; "" for an imported one
  int64_t time_ns = 0;   ///< of one run; 0: the trial failed
  bool final = false;    ///< measured in turns with the default, so that it counts more than its time
  std::string line;
  bool in_set = false;  ///< set by the catalog: a set has it
};

/// Empty texts, 0 and empty lists let everything through.
struct TuningFilter {
  std::vector<std::string> tasks = {};
  std::string target = {};
  std::string cpu = {};
  int threads = 0;
  std::string generator = {};
  bool with_imported = true;
  std::string job = {};
  std::optional<Digest> set = std::nullopt;
  std::string subject = {};  ///< of a set that has the record
};

struct TuningSetRow {
  Digest id;
  std::string subject = {};  ///< the model that was tuned; "" for an import
  std::vector<Digest> records = {};
  int64_t created_ms = 0;  ///< set by the catalog
};

/// A name to point at something in the transaction that publishes it.
struct NameChange {
  std::string kind;
  std::string name;
  bool replace = false;  ///< false: Error(kNameTaken) when the name points elsewhere
};

struct MemberRow {
  std::string name;
  Digest digest;
  uint64_t size = 0;
};

struct PackageRow {
  Digest id;  ///< also the digest of the metadata blob
  std::vector<MemberRow> members = {};
  Digest archive;  ///< of the streamed archive, which is not stored
  uint64_t archive_bytes = 0;
  std::string facts = "{}";
  int64_t created_ms = 0;    ///< set by the catalog
  int64_t last_used_ms = 0;  ///< set by the catalog
  bool pinned = false;
  std::string owner =
      {};  ///< the caller whose quota it takes, with archive_bytes; of a job's the job's submitter
  std::string model = {};     ///< opaque; lists are filtered by it
  std::string target = {};    ///< opaque; lists are filtered by it
  std::string metadata = {};  ///< what the metadata blob holds; Catalog::package_metadata gives it back
};

/// "" lets everything through.
struct PackageFilter {
  std::string model = {};
  std::string target = {};
};

struct DeploymentRow {
  std::string name;
  std::string desired = "{}";
  std::string versions = "{}";
  std::vector<Digest> packages = {};  ///< what it uses: these cannot be removed
  int64_t updated_ms = 0;             ///< set by the catalog
  std::vector<Digest> blobs = {};     ///< further ones that it needs, such as labels
  int64_t revision = 0;               ///< another one after each change; set by the catalog
};

enum class JobState { kQueued, kRunning, kSucceeded, kFailed, kCancelled };

/// "queued" …
std::string_view job_state_name(JobState state);
std::optional<JobState> job_state_from_name(std::string_view name);
/// Succeeded, failed or cancelled.
bool is_final(JobState state);

struct JobRow {
  int64_t sequence = 0;  ///< order of submission, and cursor of lists
  std::string id;        ///< UUIDv7
  std::string kind;
  std::string subject;  ///< opaque id that lists are filtered by; "" for none
  std::string action_key;
  JobState state = JobState::kQueued;
  std::string request = "{}";
  std::string resolved = "{}";
  std::string progress = "{}";
  std::string result;  ///< "" before success
  std::string error;   ///< "" while there is none; the latest attempt's
  int attempt = 0;     ///< 0 before the first claim
  int max_attempts = 1;
  int priority = 0;
  int submitters = 1;
  bool cancel_requested = false;
  std::string owner;
  int64_t lease_until_ms = 0;
  int64_t not_before_ms = 0;
  int64_t created_ms = 0;
  int64_t started_ms = 0;   ///< 0 before the first claim
  int64_t finished_ms = 0;  ///< 0 before the end
  std::optional<Digest> log = std::nullopt;
  std::optional<Digest> package = std::nullopt;  ///< what it published
  std::string submitter = {};                    ///< the caller who made it or had it tried again last
  std::string demand = {};                       ///< as JobSubmission::demand
};

/// How many live jobs there are of a kind.
struct JobCount {
  JobState state = JobState::kQueued;  ///< or running
  std::string kind;
  bool is_elsewhere =
      false;  ///< queued: it demands something of who does it; running: a worker elsewhere has it
  int64_t count = 0;
};

/// How the owner of a lease begins that a process on another machine holds, which outlives the process that
/// gave it.
inline constexpr std::string_view kRemoteOwner = "worker:";

/// A process on another machine that does jobs of this catalog.
struct WorkerRow {
  std::string name;
  std::string caller;            ///< whose key it shows
  std::string facts = "{}";      ///< what it said of itself when it last asked for work
  std::string status = "{}";     ///< what it measures of itself
  std::string state = "active";  ///< "active", "drained": it gets no more work, "revoked": nor is it heard
  int64_t created_ms = 0;        ///< set by the catalog
  int64_t seen_ms = 0;           ///< set by the catalog
};

struct JobEventRow {
  int64_t sequence = 0;  ///< from 1 within a job, set by the catalog
  std::string type;
  std::string data = "{}";
};

/// An event among those of all jobs.
struct PlacedEventRow {
  int64_t position = 0;  ///< above 0, in order of arrival, with gaps; never used twice
  std::string job;
  JobEventRow event;
};

/// What one caller has here.
struct CallerUse {
  std::string caller;
  int64_t live_jobs = 0;  ///< queued and running
  uint64_t bytes = 0;     ///< of models and packages
};

/// An API key that the catalog keeps; its text is nowhere.
struct ApiKeyRow {
  std::string name;
  std::string scopes;  ///< separated by commas
  Digest hash;         ///< of the key's text
  int64_t created_ms = 0;
  int64_t expires_ms = 0;  ///< 0: never
};

/// One request that may have changed something, or was refused for want of a right.
struct AuditRow {
  int64_t sequence = 0;  ///< order of arrival, set by the catalog; cursor of lists
  int64_t ts_ms = 0;
  std::string request_id;
  std::string caller;  ///< "" for one without a valid key
  std::string peer;
  std::string client;
  std::string method;
  std::string target;
  int status = 0;
};

/// "", 0 and nothing let everything through.
struct AuditFilter {
  std::optional<std::string> caller = std::nullopt;
  std::string method = {};
  int status = 0;
  int64_t since_ms = 0;
  int64_t until_ms = 0;  ///< exclusive
};

/// What the audit rows may take.
struct AuditBounds {
  int64_t keep_ms = 0;   ///< older rows go
  int64_t max_rows = 0;  ///< past it rows go, those of requests without a valid key first, then the oldest
};

/// What a caller's request with an idempotency key was answered.
struct AnswerRow {
  std::string caller;
  std::string key;
  std::string request_hash;  ///< of the request
  std::string answer;        ///< opaque
};

/// A caller's request that may come again, and the idempotency key by which that is known.
struct RepeatKey {
  std::string caller = {};
  std::string key = {};      ///< "": it is not known
  std::string request = {};  ///< what it asks for

  bool operator==(const RepeatKey&) const = default;
};

}  // namespace tensormill::storage
