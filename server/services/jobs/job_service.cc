#include "server/services/jobs/job_service.h"

#include <algorithm>
#include <set>

#include "compiler/driver/compile.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/layouts/desired_layout.h"
#include "runtime/base/error.h"
#include "runtime/base/error_json.h"
#include "runtime/base/json.h"
#include "runtime/package/metadata.h"
#include "server/services/deployments/host_runs.h"
#include "server/services/deployments/input_values.h"
#include "server/services/forms.h"
#include "server/services/jobs/compile_action.h"
#include "server/services/store/model_service.h"
#include "server/services/workers/work_desk.h"

namespace tensormill::server {

namespace {

/// A crash of its child is tried once more: the second marks the job. A lost worker is none.
constexpr int kMaxAttempts = 2;
/// Each goes on from the records of the ones before, so that restarts of the server lose nothing.
constexpr int kMaxTuneAttempts = 20;
/// Of a model's facts as JSON.
constexpr int kFactsDepth = 128;

void refuse_unsupported(const services::CompileRequest& request) {
  const auto unless = [](bool absent, const char* pointer) {
    if (!absent) refuse_job(ErrorCode::kNotSupported, pointer, "is not implemented yet");
  };
  unless(!request.mixed_precision, "/mixed_precision");
  if (!request.pass_config.empty()) {
    refuse_job(ErrorCode::kInvalidArgument, "/pass_config/" + request.pass_config.begin()->first,
               "no pass has options");
  }
}

/// What import told of a model when it came. `has_kinds`: it also told which inputs are no tensors.
struct KnownInputs {
  std::vector<services::TensorSpec> inputs;
  bool has_kinds = true;
};

void check_shapes(const services::CompileRequest& request, const KnownInputs& known_inputs) {
  const std::vector<services::TensorSpec>& inputs = known_inputs.inputs;
  for (const auto& [name, shape] : request.input_shapes) {
    const auto input = std::find_if(inputs.begin(), inputs.end(), [&, &name = name](const auto& one) {
      const bool may_have_elements = !one.kind.empty() || !known_inputs.has_kinds;
      const bool is_of_map =
          one.kind == "map" && (name == one.name + ".keys" || name == one.name + ".values");
      return one.name == name || is_of_map || (may_have_elements && name.rfind(one.name + "/", 0) == 0);
    });
    if (input != inputs.end()) continue;
    std::string known;
    for (const auto& one : inputs) known += (known.empty() ? "" : ", ") + one.name;
    refuse_job(ErrorCode::kInvalidArgument, (Json::json_pointer("/input_shapes") / name).to_string(),
               "the model has no such input; it has " + known);
  }
}

/// Where an input may have dims without names, which import names, the job's import tells which there are.
void check_extents(const services::TuneRequest& request, const KnownInputs& known_inputs) {
  std::set<std::string> dims;
  for (const services::TensorSpec& input : known_inputs.inputs) {
    if (!input.kind.empty() || !known_inputs.has_kinds) return;
    for (const Dim& dim : input.shape) {
      const std::string* name = std::get_if<std::string>(&dim);
      if (name == nullptr ? std::get<int64_t>(dim) < 0 : name->empty()) return;
      if (name != nullptr) dims.insert(*name);
    }
  }
  for (const auto& [input, shape] : request.compile.input_shapes) {
    for (const Dim& dim : shape) {
      if (const std::string* name = std::get_if<std::string>(&dim)) dims.insert(*name);
    }
  }
  for (const auto& [name, extents] : request.extents) {
    if (dims.count(name) == 0)
      refuse_job(ErrorCode::kInvalidArgument, (Json::json_pointer("/extents") / name).to_string(),
                 "the model has no free dim " + name);
  }
}

/// What the model's facts say of the signature; of none the facts themselves.
Json signature_of(const Json& facts, const std::string& name) {
  if (name.empty()) return facts;
  const Json known = facts.value("signatures", Json::object());
  if (known.contains(name)) return known.at(name);
  std::string names;
  for (const auto& [each, values] : known.items()) names += (names.empty() ? "" : ", ") + each;
  refuse_job(ErrorCode::kInvalidArgument, "/signature",
             "the model has no signature \"" + name + "\"" + (names.empty() ? "" : "; it has " + names));
}

KnownInputs known_inputs(const Json& facts, const std::string& signature) {
  return {specs_from_json(signature_of(facts, signature).at("inputs")), has_kinds(facts)};
}

/// The values that the request gives inputs, which the model takes.
Json checked_values(const services::CompileRequest& request, const KnownInputs& known_inputs) {
  if (request.input_values.empty()) return Json::object();
  Json values = parse_json(request.input_values), checked = values;
  for (const services::TensorSpec& input : known_inputs.inputs) {
    // Whether such a value is right the job's import tells.
    const auto value = checked.find(input.name);
    const bool is_none = value != checked.end() && (value->is_null() || *value == Json::array());
    if (is_none && !known_inputs.has_kinds) checked.erase(value);
  }
  frontend::ImportOptions ignored;
  bind_input_values(checked, known_inputs.inputs, ignored);
  return values;
}

/// Whether the model has these operators its compilation tells.
void resolve_layout(const services::CompileRequest& request, Json& resolved) {
  const std::set<std::string> ops(request.desired_layout_ops.begin(), request.desired_layout_ops.end());
  const bool takes_pass = std::find(request.disabled_pass.begin(), request.disabled_pass.end(),
                                    "convert_layout") == request.disabled_pass.end();
  if (!takes_pass)
    refuse_job(ErrorCode::kInvalidArgument, "/disabled_pass", "convert_layout makes the desired layout");
  try {
    passes::parse_desired_layout(*request.desired_layout, {ops.begin(), ops.end()}, ops::standard_ops());
  } catch (const Error& error) {
    refuse_job(error.code(), "/desired_layout_ops", error.message());
  }
  resolved["desired_layout"] = *request.desired_layout;
  if (!ops.empty()) resolved["desired_layout_ops"] = ops;
}

services::JobState state_of(storage::JobState state) {
  return services::job_state_from_name(storage::job_state_name(state)).value();
}

services::JobProgress progress_of(const std::string& text) {
  services::JobProgress progress;
  const Json json = parse_json(text);
  progress.stage = json.value("stage", "");
  progress.done = json.value("done", int64_t{0});
  progress.total = json.value("total", int64_t{0});
  const auto number = [&](const char* name) -> std::optional<double> {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
  progress.best_ms = number("best_ms");
  progress.eta_s = number("eta_s");
  return progress;
}

services::JobError error_of(const std::string& text) {
  const Error kept = error_from_json(parse_json(text));
  return {kept.code(), kept.message(), kept.details(), kept.extra_json()};
}

services::Job job_of(const storage::JobRow& row) {
  services::Job job;
  job.id = row.id;
  job.kind = row.kind;
  job.state = state_of(row.state);
  job.attempt = std::max(row.attempt, 1);
  job.resolved_json = row.resolved;
  job.progress = progress_of(row.progress);
  job.result_json = row.result;
  if (!row.error.empty()) job.error = error_of(row.error);
  job.created_at = {row.created_ms};
  if (row.started_ms != 0) job.started_at = services::Timestamp{row.started_ms};
  if (row.finished_ms != 0) job.finished_at = services::Timestamp{row.finished_ms};
  return job;
}

target::Target target_of(const std::string& text, const target::Target& host) {
  try {
    return target::parse_target(text, host);
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), {{"/target", error.message()}});
  }
}

}  // namespace

void refuse_job(ErrorCode code, const std::string& pointer, const std::string& detail) {
  throw Error(code, pointer.substr(1) + ": " + detail, {{pointer, detail}});
}

Json JobServiceImpl::resolve(const services::CompileRequest& request, const storage::ModelRow& model) {
  const Json facts = parse_json(model.facts, kFactsDepth);
  const KnownInputs inputs = known_inputs(facts, request.signature);
  check_shapes(request, inputs);
  const target::Target target = target_of(request.target, host_);
  Json shapes = Json::object();
  for (const auto& [name, shape] : request.input_shapes) shapes[name] = dims_to_json(shape);
  const std::set<std::string> disabled(request.disabled_pass.begin(), request.disabled_pass.end());
  Json resolved = {{"kind", "compile"},
                   {"model", model.id.text()},
                   {"model_format", facts.at("format")},
                   {"target", target.canonical()},
                   {"opt_level", request.opt_level},
                   {"input_shapes", std::move(shapes)},
                   {"shape_buckets", request.shape_buckets},
                   {"outputs", request.outputs.value_or(std::vector<std::string>{})},
                   {"disabled_pass", disabled},
                   {"verify", "sample"},
                   {"host_runs_target", host_runs(target, host_)},
                   {"compiler", driver::compiler_build()}};
  if (!request.signature.empty()) resolved["signature"] = request.signature;
  if (!request.quantized.empty() && facts.at("format") != "tflite")
    refuse_job(
        ErrorCode::kNotSupported, "/quantized",
        "models of format \"" + facts.at("format").get<std::string>() + "\" have no reference kernels");
  if (!request.quantized.empty()) resolved["quantized"] = request.quantized;
  if (request.desired_layout) resolve_layout(request, resolved);
  Json values = checked_values(request, inputs);
  if (!values.empty()) resolved["input_values"] = std::move(values);
  if (!request.on.empty()) resolved["on"] = request.on;
  try {
    resolve_records(records_, catalog_, request.tuning_records, resolved);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    refuse_job(ErrorCode::kInvalidArgument, "/tuning_records", error.message());
  }
  return resolved;
}

storage::ModelRow JobServiceImpl::model_of(const services::CompileRequest& request) {
  const auto model = find_model(catalog_, request.model);
  if (!model)
    refuse_job(ErrorCode::kInvalidArgument, "/model", "there is no model \"" + request.model + "\"");
  return *model;
}

/// What the job works on may have gone since it was looked for: the catalog looks again, in the transaction
/// that makes the job.
storage::Submitted JobServiceImpl::submit_whole(const storage::JobSubmission& submission) {
  try {
    return queue_.submit(submission);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    const char* pointer = submission.needs_package ? "/package" : "/model";
    if (submission.needs_set && !catalog_.find_tuning_set(*submission.needs_set)) pointer = "/prior_records";
    refuse_job(ErrorCode::kInvalidArgument, pointer, error.message());
  }
}

services::Submission JobServiceImpl::submit(storage::JobSubmission submission, const Json& form,
                                            const services::SubmitOptions& options,
                                            const services::CallContext& context) {
  submission.submitter = callers_.submitter(context.submitter);
  submission.resolved = canonical_json(form);
  submission.action_key = action_key(form);
  submission.max_queued = options_.max_queued;
  // Keys are a caller's own. Without API keys there is one caller, and the plain key is kept.
  if (options.idempotency_key) {
    const bool is_local = context.submitter == services::kLocalCaller;
    submission.idempotency_key = (is_local ? "" : context.submitter + "/") + *options.idempotency_key;
  }
  submission.request_hash = Digest::of(submission.resolved + (submission.force ? "!" : "")).text();
  const storage::Submitted submitted = submit_whole(submission);
  const bool cached = submitted.outcome == storage::SubmitOutcome::kCached;
  if (cached) registry_.count("action_cache_hits_total", {});
  if (submitted.outcome == storage::SubmitOutcome::kCreated) registry_.count("action_cache_misses_total", {});
  return {job_of(submitted.job), cached};
}

services::Submission JobServiceImpl::submit_compile(const services::CompileRequest& request,
                                                    const services::SubmitOptions& options,
                                                    const services::CallContext& context) {
  refuse_unsupported(request);
  const storage::ModelRow model = model_of(request);
  storage::JobSubmission submission;
  submission.kind = "compile";
  submission.subject = model.id.text();
  submission.needs_models = {model.id};
  submission.request = Json{{"model", request.model}, {"target", request.target}}.dump();
  submission.max_attempts = kMaxAttempts;
  submission.force = request.force;
  submission.still_whole = [this](const storage::JobRow& job) { return is_whole(job); };
  submission.demand = request.on;
  return submit(std::move(submission), resolve(request, model), options, context);
}

services::Submission JobServiceImpl::submit_tune(const services::TuneRequest& request,
                                                 const services::SubmitOptions& options,
                                                 const services::CallContext& context) {
  services::CompileRequest compile = request.compile;
  compile.tuning_records.reset();
  refuse_unsupported(compile);
  if (!compile.disabled_pass.empty())
    refuse_job(ErrorCode::kNotSupported, "/disabled_pass", "is not implemented for tune jobs");
  const storage::ModelRow model = model_of(compile);
  // Where it is measured is the job's; the compilation is anybody's.
  const std::string on = std::exchange(compile.on, "");
  const Json form = resolve(compile, model);
  check_extents(request, known_inputs(parse_json(model.facts, kFactsDepth), compile.signature));
  if (on.empty() && !form.at("host_runs_target").get<bool>())
    refuse_job(ErrorCode::kNotSupported, "/target", "this machine cannot run code for it");
  if (request.prior_records && !catalog_.find_tuning_set(*Digest::parse(*request.prior_records)))
    refuse_job(ErrorCode::kInvalidArgument, "/prior_records",
               "there are no records " + *request.prior_records);
  const target::Target target = target_of(compile.target, host_);
  storage::JobSubmission submission;
  submission.kind = "tune";
  submission.subject = model.id.text();
  submission.needs_models = {model.id};
  submission.request = Json{{"model", compile.model}, {"target", compile.target}}.dump();
  submission.max_attempts = kMaxTuneAttempts;
  submission.force = compile.force;
  submission.reuse_result = false;
  if (request.prior_records) submission.needs_set = Digest::parse(*request.prior_records);
  const int threads = on.empty() ? records_.default_threads(target) : std::max(1, target.facts.num_cores);
  Json tune = {{"kind", "tune"},
               {"compile", form},
               {"trials", request.trials},
               {"time_budget_s", request.time_budget_s},
               {"tuner", request.tuner},
               {"autoscheduler", request.autoscheduler},
               {"tasks", request.tasks},
               {"early_stopping", request.early_stopping},
               {"prior_records", request.prior_records ? Json(*request.prior_records) : Json()},
               {"exclusive", request.exclusive},
               {"threads", request.threads > 0 ? request.threads : threads},
               {"number", request.number},
               {"repeat", request.repeat},
               {"min_repeat_ms", request.min_repeat_ms},
               {"seed", request.seed},
               {"again", compile.force}};
  if (!on.empty()) tune["on"] = on;
  if (!request.extents.empty()) tune["extents"] = request.extents;
  return submit(std::move(submission), tune, options, context);
}

services::Submission JobServiceImpl::submit_benchmark(const services::BenchmarkRequest& request,
                                                      const services::SubmitOptions& options,
                                                      const services::CallContext& context) {
  const auto id = Digest::parse(request.package);
  const auto package = id ? catalog_.find_package(*id) : std::nullopt;
  if (!package) {
    refuse_job(ErrorCode::kInvalidArgument, "/package", "there is no package \"" + request.package + "\"");
  }
  storage::JobSubmission submission;
  submission.kind = "benchmark";
  submission.subject = parse_json(package->facts).value("model", "");
  submission.needs_package = package->id;
  submission.request = Json{{"package", request.package}}.dump();
  submission.max_attempts = kMaxAttempts;
  submission.force = request.force;
  submission.reuse_result = false;
  submission.demand = request.on;
  // 0: as many as the worker that measures has cores, which nobody knows yet.
  const int threads =
      request.threads > 0 || !request.on.empty() ? request.threads : records_.default_threads(host_);
  Json form = {{"kind", "benchmark"},
               {"package", package->id.text()},
               {"repeat", request.repeat},
               {"number", request.number},
               {"threads", threads}};
  if (!request.on.empty()) form["on"] = request.on;
  return submit(std::move(submission), form, options, context);
}

/// Asks the blobs alone: it runs inside a transaction of the catalog.
bool JobServiceImpl::is_whole(const storage::JobRow& job) {
  if (!job.package || !blobs_.exists(*job.package)) return false;
  const package::Metadata metadata = package::metadata_from_json(blobs_.open(*job.package)->text());
  return std::all_of(metadata.members.begin(), metadata.members.end(),
                     [&](const auto& member) { return blobs_.exists(member.second.digest); });
}

services::Page<services::Job> JobServiceImpl::list(const services::JobQuery& query) {
  storage::JobFilter filter;
  filter.kind = query.kind;
  if (query.state) filter.state = storage::job_state_from_name(services::job_state_name(*query.state));
  if (!query.model.empty()) {
    const auto model = find_model(catalog_, query.model);
    // No job has this subject.
    filter.subject = model ? model->id.text() : "unknown model";
  }
  const auto rows = catalog_.list_jobs(filter, {cursor_from_text(query.page.cursor), query.page.limit});
  services::Page<services::Job> page;
  for (const storage::JobRow& row : rows.items) page.items.push_back(job_of(row));
  page.next_cursor = cursor_text(rows.next);
  return page;
}

services::Job JobServiceImpl::get(const std::string& id) { return job_of(queue_.get(id)); }

services::Job JobServiceImpl::wait(const std::string& id, std::chrono::milliseconds timeout,
                                   const services::CallContext& context) {
  return job_of(queue_.wait(id, timeout, context.cancelled));
}

storage::Submitter JobServiceImpl::submitter_of(const services::CallContext& context) const {
  storage::Submitter submitter = callers_.submitter(context.submitter);
  submitter.is_admin = context.is_admin;
  return submitter;
}

services::CancelResult JobServiceImpl::cancel(const std::string& id, const services::CallContext& context) {
  const storage::CancelOutcome outcome = queue_.cancel(id, submitter_of(context), context.idempotency_key);
  const bool stopped = !outcome.withdrawn_only && storage::is_final(outcome.job.state);
  return {job_of(outcome.job), stopped};
}

services::Job JobServiceImpl::retry(const std::string& id, const services::CallContext& context) {
  // What it works on may be an upload's, or was only sent for it: it must not go before the row names it
  // again.
  const storage::BlobHold hold(blobs_);
  for (const Digest& blob : blobs_named_by(parse_json(queue_.get(id).resolved))) {
    if (!blobs_.keep(blob))
      throw Error(ErrorCode::kConflict, "job " + id + " works on the blob " + blob.text() +
                                            ", which is not here any more; submit it again");
  }
  return job_of(queue_.retry(id, submitter_of(context), context.idempotency_key));
}

services::JobEvents JobServiceImpl::events(const std::string& id, int64_t after,
                                           std::chrono::milliseconds timeout,
                                           const services::CallContext& context) {
  const jobs::JobEvents found = queue_.events(id, after, timeout, context.cancelled);
  services::JobEvents events;
  for (const storage::JobEventRow& row : found.events) {
    events.events.push_back({row.sequence, row.type, row.data});
  }
  events.ended = found.ended;
  return events;
}

std::vector<services::PlacedEvent> JobServiceImpl::all_events(int64_t after,
                                                              std::chrono::milliseconds timeout,
                                                              const services::CallContext& context) {
  std::vector<services::PlacedEvent> events;
  for (const storage::PlacedEventRow& row : queue_.all_events(after, timeout, context.cancelled)) {
    events.push_back({row.position, row.job, {row.event.sequence, row.event.type, row.event.data}});
  }
  return events;
}

std::shared_ptr<http::Content> JobServiceImpl::log(const std::string& id) {
  jobs::JobLog log = workers_.open_log(queue_.get(id));
  if (!log.file.valid()) return std::make_shared<http::BytesContent>("");
  return std::make_shared<http::FileContent>(std::move(log.file), 0, log.size);
}

}  // namespace tensormill::server
