/// Jobs: whatever computes for long. Submission resolves model, target and tuning records, so that the action
/// key covers what will really be done.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/http/body.h"
#include "api/services/common.h"
#include "runtime/base/error.h"

namespace tensormill::services {

/// POST /v1/jobs with kind "compile".
struct CompileRequest {
  std::string model;                             ///< name or id; not empty
  std::string target;                            ///< target string or JSON text of one; not empty
  int opt_level = 3;                             ///< 0..4
  std::map<std::string, DimShape> input_shapes;  ///< by input name
  /// JSON object, canonical: values that inputs have for good, by input name: {"sr":16000}; "": none.
  std::string input_values;
  std::map<std::string, std::vector<int64_t>> shape_buckets;  ///< by free dim: ascending, >= 1
  std::optional<std::vector<std::string>> outputs;            ///< nothing: the model's own
  std::string signature = {};                                 ///< of the model's; "": its first
  std::string quantized = {};  ///< "exact": the roundings of the reference kernels; "": the fast ones
  std::optional<std::string> tuning_records = "auto";  ///< "auto", an id, nothing for none
  std::map<std::string, std::string> pass_config;      ///< values as the command line writes them
  std::vector<std::string> disabled_pass;
  std::optional<std::string> desired_layout;         ///< "NCHW", "NHWC"
  std::vector<std::string> desired_layout_ops = {};  ///< operators that it is for; none: all
  std::optional<std::string> mixed_precision;
  bool force = false;   ///< compile though a result exists
  std::string on = {};  ///< labels (api/http/labels.h) that a worker must have; "": anybody may do it
};

/// POST /v1/jobs with kind "tune".
struct TuneRequest {
  CompileRequest compile;    ///< model, target and options; its records are not used
  int64_t trials = 1000;     ///< of the whole model
  double time_budget_s = 0;  ///< 0: none
  std::string tuner = "xgb";
  bool autoscheduler = false;
  std::string tasks = "all";  ///< or places such as "0,2" and "3-5"
  /// By free dim: at which kernels of all extents are measured; none: those with kernels of their own.
  std::map<std::string, std::vector<int64_t>> extents = {};
  int64_t early_stopping = 0;                ///< trials of a task without a better one; 0: never
  std::optional<std::string> prior_records;  ///< id of a set whose trials count as known
  bool exclusive = false;  ///< other jobs stand still all the time, not only while something is measured
  int threads = 0;         ///< that candidates run on; 0: the target's cores
  int number = 1;
  int repeat = 3;
  double min_repeat_ms = 20;
  int64_t seed = 0;
};

/// POST /v1/jobs with kind "benchmark".
struct BenchmarkRequest {
  std::string package;  ///< id
  std::string on = {};  ///< labels (api/http/labels.h) that a worker must have; "": this machine
  int repeat = 10;
  int number = 1;
  int threads = 0;  ///< 0: one a core
  bool force = false;
};

/// POST /v1/jobs with kind "verify": a package beside its model, evaluated node by node.
struct VerifyRequest {
  std::string package;  ///< id
  std::string inputs;   ///< id of a blob: NPZ
  std::string on = {};  ///< as of a benchmark
  double rtol = 1e-3;   ///< of the largest magnitude of each output of floats
  double atol = 1e-6;
  double timeout_s = 600;  ///< of the whole, with the time that it waits for a worker
};

/// POST /v1/jobs with kind "report": each model for each target and opt level, tried on a set of inputs.
struct ReportRequest {
  std::vector<std::string> models;  ///< names or ids; not empty
  std::vector<std::string> targets = {"llvm -mcpu=native"};
  std::vector<int> opt_levels = {3};
  std::vector<std::string> layouts;                    ///< "NCHW", "NHWC"; none: the compiler chooses
  std::map<std::string, DimShape> input_shapes;        ///< by input name
  std::optional<std::string> tuning_records = "auto";  ///< as of a compile job
  std::string inputs;                                  ///< id of a blob: NPZ with the examples of each input
  std::optional<std::string> labels;                   ///< id of a blob: the class of each example
  std::vector<std::string> classes;                    ///< names of the classes
  std::string scores;                                  ///< output with the scores; "": the first
  int64_t samples = 0;                                 ///< the most to look at; 0: all
  int warmup = 1;
  int repeat = 20;
  int number = 1;
  int threads = 0;              ///< 0: all that serve
  double time_budget_s = 3600;  ///< of the whole: what is not tried by then says so
};

/// Configurations of one report, at most.
inline constexpr size_t kMaxConfigurations = 64;

using JobRequest = std::variant<CompileRequest, TuneRequest, BenchmarkRequest, VerifyRequest, ReportRequest>;

enum class ReportForm { kJson, kHtml };

/// How a job came to be.
struct SubmitOptions {
  std::optional<std::string> idempotency_key;  ///< same key and same body within 24 h: the same job
};

enum class JobState { kQueued, kRunning, kSucceeded, kFailed, kCancelled };

/// "queued" …
std::string_view job_state_name(JobState state);
/// Nothing for an unknown name.
std::optional<JobState> job_state_from_name(std::string_view name);
/// Succeeded, failed or cancelled.
bool is_final(JobState state);

struct JobProgress {
  std::string stage;  ///< "passes", "codegen" …
  int64_t done = 0;
  int64_t total = 0;  ///< 0 when unknown
  std::optional<double> best_ms;
  std::optional<double> eta_s;
};

struct JobError {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::vector<ErrorDetail> details;
  std::string extra_json;
};

/// What an error says of the work, for who looks at many jobs: "refused", "wrong_answer", "timed_out",
/// "timed_out_in_queue" where no worker took it (kOnWhat is what is wrong then), "crashed", "device_lost"
/// where who had it was not heard any more, again and again, "out_of_memory", or "failed" where it was the
/// machine. Of every job alike, wherever it ran.
std::string_view job_verdict(const JobError& error);
/// The member of a request that names a worker's labels.
inline constexpr std::string_view kOnWhat = "/on";

struct Job {
  std::string id;    ///< UUIDv7 text
  std::string kind;  ///< "compile", "tune", "benchmark", "verify", "report"
  JobState state = JobState::kQueued;
  int attempt = 1;
  std::string resolved_json;  ///< object: model digest, canonical target, options, records
  JobProgress progress;
  std::string result_json;  ///< object such as {"package":"sha256:…"}; "" before success
  std::optional<JobError> error;
  Timestamp created_at;
  std::optional<Timestamp> started_at;
  std::optional<Timestamp> finished_at;
};

struct Submission {
  Job job;
  bool cached = false;  ///< an earlier job of the same action had succeeded: answered with 200
};

struct JobQuery {
  PageQuery page;
  std::optional<JobState> state;
  std::string kind;   ///< "" = all
  std::string model;  ///< name or id; "" = all
};

struct JobEvent {
  int64_t sequence = 0;  ///< ascending within a job, from 1
  std::string type;      ///< "state" "progress" "trial" "log" "end"
  std::string data_json;
};

/// An event among those of all jobs.
struct PlacedEvent {
  int64_t position = 0;  ///< ascending from 1, in order of arrival
  std::string job;
  JobEvent event;
};

struct JobEvents {
  std::vector<JobEvent> events;
  bool ended = false;  ///< nothing will follow these
};

struct CancelResult {
  Job job;
  bool stopped = false;  ///< false: other submitters still want it, or it is being stopped
};

/// Thread-safety: all methods from many threads.
class JobService {
public:
  virtual ~JobService() = default;
  /// Throws Error(kInvalidArgument) with a detail pointing at "/model", "/target" … for what the body names
  /// and is not there or does not fit, Error(kInvalidTarget), Error(kUnavailable) when the queue is full,
  /// Error(kQuotaExceeded).
  virtual Submission submit_compile(const CompileRequest& request, const SubmitOptions& options,
                                    const CallContext& context) = 0;
  /// As submit_compile; joins live jobs only. With `compile.force` kernels that were tuned before are tuned
  /// again.
  virtual Submission submit_tune(const TuneRequest& request, const SubmitOptions& options,
                                 const CallContext& context) = 0;
  virtual Submission submit_benchmark(const BenchmarkRequest& request, const SubmitOptions& options,
                                      const CallContext& context) = 0;
  virtual Submission submit_verify(const VerifyRequest& request, const SubmitOptions& options,
                                   const CallContext& context) = 0;
  /// Details point at "/models/0", "/targets/1" …
  virtual Submission submit_report(const ReportRequest& request, const SubmitOptions& options,
                                   const CallContext& context) = 0;
  /// Newest first.
  virtual Page<Job> list(const JobQuery& query) = 0;
  /// Throws Error(kNotFound), as do all below.
  virtual Job get(const std::string& id) = 0;
  /// Returns when the job is final, after `timeout`, or when the context is cancelled, with the job as it is
  /// then.
  virtual Job wait(const std::string& id, std::chrono::milliseconds timeout, const CallContext& context) = 0;
  /// Withdraws the caller, who submitted it; an admin who did not withdraws all. The last one stops the work,
  /// whose processes are gone within 2 s. Throws Error(kForbidden) for others' jobs, Error(kConflict) for a
  /// job that is final, but for a cancelled one, which is returned as it is.
  virtual CancelResult cancel(const std::string& id, const CallContext& context) = 0;
  /// A failed or cancelled job of the caller, or of anyone for an admin, runs again: same id, attempt + 1.
  /// Throws Error(kForbidden), Error(kConflict), Error(kQuotaExceeded).
  virtual Job retry(const std::string& id, const CallContext& context) = 0;
  /// Events after `after`, at once when there are any, else after at most `timeout`.
  virtual JobEvents events(const std::string& id, int64_t after, std::chrono::milliseconds timeout,
                           const CallContext& context) = 0;
  /// Of all jobs, above `after`, at once when there are any, else after at most `timeout`.
  virtual std::vector<PlacedEvent> all_events(int64_t after, std::chrono::milliseconds timeout,
                                              const CallContext& context) = 0;
  /// The position of the latest event; 0 before the first.
  virtual int64_t last_event() = 0;
  /// The log as it stands: UTF-8 text. Never null.
  virtual std::shared_ptr<http::Content> log(const std::string& id) = 0;
  /// What a report job has found until now, as JSON or as a page that stands alone. Throws Error(kNotFound)
  /// for jobs of other kinds, too.
  virtual std::string report(const std::string& id, ReportForm form) = 0;
};

}  // namespace tensormill::services
