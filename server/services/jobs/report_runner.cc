#include "server/services/jobs/report_runner.h"

#include <algorithm>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/memory_file.h"
#include "runtime/package/metadata.h"
#include "runtime/package/package_reader.h"
#include "server/jobs/job_attempt.h"
#include "server/report/rows.h"
#include "server/services/jobs/compile_action.h"
#include "server/services/jobs/report_document.h"
#include "server/services/jobs/tune_bench.h"

namespace tensormill::server {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Whether it is the configuration's, so that the others may do well: not the machine's or the store's.
bool is_of_configuration(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnavailable:
    case ErrorCode::kCancelled:
    case ErrorCode::kDiskFull:
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt:
      return false;
    default:
      return true;
  }
}

Json error_row(const std::string& step, const Error& error) {
  const ErrorCodeInfo& info = error_code_info(error.code());
  return {{"step", step}, {"code", info.name}, {"message", error.message()}, {"exit_code", info.exit_code}};
}

std::string joined_lines(const Json& warnings) {
  std::string text;
  for (const Json& warning : warnings) text += warning.get<std::string>() + "\n";
  return text;
}

std::string summary_line(const Json& row, size_t index, size_t count) {
  std::string line = "configuration " + std::to_string(index + 1) + " of " + std::to_string(count) + ": " +
                     row["name"].get<std::string>();
  if (row["state"] != "ok") return line + ": " + row["error"]["message"].get<std::string>();
  return line + ": " + std::to_string(row["run"]["times"]["median_ms"].get<double>()) + " ms";
}

}  // namespace

/// The blobs that all configurations share.
struct ReportRunner::Sets {
  std::shared_ptr<const storage::Blob> inputs;
  std::shared_ptr<const storage::Blob> labels;  ///< null: none
};

void ReportRunner::compile(jobs::JobContext& context, const Json& configuration, const PackageFiles& files,
                           milliseconds left, Json& row, std::string& warnings) const {
  CompileWork work = work_;
  work.options.import_timeout = std::min(work.options.import_timeout, left);
  work.options.timeout = std::min(work.options.timeout, left);
  Json form = configuration.at("compile");
  const Clock::time_point begun = Clock::now();
  GraphFiles graph(context.folder());
  const std::vector<std::string> kernels =
      import_graph(work, context, form, graph, has_pending_records(form));
  jobs::ChildUse use = context.last_child();
  const Tuned tuned = work.desk.tuned(context, form, kernels);
  const Json said = parse_json(compile_graph(work, context, form, graph, tuned, files));
  use.cpu_seconds += context.last_child().cpu_seconds;
  use.max_resident_bytes = std::max(use.max_resident_bytes, context.last_child().max_resident_bytes);
  row["compile"] = {{"wall_s", std::chrono::duration<double>(Clock::now() - begun).count()},
                    {"cpu_s", use.cpu_seconds},
                    {"max_resident_bytes", use.max_resident_bytes},
                    {"times_ms", said.at("times_ms")}};
  warnings = joined_lines(said.value("warnings", Json::array()));
  for (const std::string& line : layout_lines(said)) warnings += line + "\n";
}

Json ReportRunner::evaluate(jobs::JobContext& context, const Json& resolved, const PackageFiles& files,
                            const Sets& sets, milliseconds left) const {
  const int asked = resolved.at("threads").get<int>();
  const int threads = asked > 0 ? std::min(asked, pool_.cores()) : pool_.cores();
  const milliseconds timeout = std::min(options_.timeout, left);
  Json request = {{"has_labels", sets.labels != nullptr},
                  {"threads", threads},
                  {"memory_budget", options_.memory},
                  {"timeout_ms", timeout.count()}};
  for (const char* name : {"classes", "scores", "samples", "warmup", "repeat", "number"})
    request[name] = resolved.at(name);
  const FileDescriptor told = memory_file("request", request.dump());
  const FileDescriptor no_labels = memory_file("labels");
  jobs::ChildSpec spec;
  spec.command = "child-evaluate";
  spec.descriptors = descriptors_of(files);
  spec.descriptors.push_back(sets.inputs->fd());
  spec.descriptors.push_back(sets.labels ? sets.labels->fd() : no_labels.get());
  spec.descriptors.push_back(told.get());
  spec.limits.data_bytes = options_.memory;
  spec.limits.kind = jobs::ChildKind::kRun;
  spec.limits.nice = jobs::kMeasureNice;
  spec.time_limit = timeout;
  const parallel::Lease lease = lease_cores(pool_, threads, context);
  const auto quiet = context.quiet();
  return parse_json(context.run_child(std::move(spec)));
}

void ReportRunner::fill_row(jobs::JobContext& context, const Json& resolved, const Json& configuration,
                            const Sets& sets, Clock::time_point end,
                            const std::function<void()>& tell_progress, Json& row) const {
  const auto left = [&] {
    const auto rest = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    if (rest.count() <= 0) {
      throw Error(ErrorCode::kDeadlineExceeded,
                  "the report's time_budget_s of " + resolved.at("time_budget_s").dump() + " is spent");
    }
    return rest;
  };
  std::string step = "compile";
  try {
    const PackageFiles files(context.folder());
    std::string warnings;
    compile(context, configuration, files, left(), row, warnings);
    const auto text = MappedFile::map(files.metadata.get(), "metadata.json");
    const package::Metadata metadata = package::metadata_from_json(text->text());
    row["package"] = report::package_json(metadata, package::package_id(text->text()), text->bytes().size());
    step = "run";
    tell_progress();  // in place of that of the compilation
    if (!configuration.at("compile").at("host_runs_target").get<bool>())
      throw Error(ErrorCode::kNotSupported, "this machine cannot run code for the target");
    Json said = evaluate(context, resolved, files, sets, left());
    const Json& evaluation = said["evaluation"];
    row["run"] = report::run_json(evaluation, context.last_child().max_resident_bytes);
    row["quality"] = said["quality"];
    const target::Target target = target::parse_target(row["target"].get<std::string>(), {});
    row["remarks"] = report::row_remarks({metadata, warnings, target, host_, sets.labels != nullptr},
                                         evaluation, row["quality"]);
    row["state"] = "ok";
  } catch (const Error& error) {
    if (!is_of_configuration(error.code())) throw;
    row["error"] = error_row(step, error);
  } catch (const jobs::JobInterrupted& interruption) {
    // What crashes costs one row, as it does where each configuration has processes of its own.
    if (interruption.why() != jobs::Interruption::kCrashed) throw;
    row["error"] = error_row(step, *interruption.error());
  }
}

Json ReportRunner::row_of(jobs::JobContext& context, const Json& resolved, const Json& configuration,
                          const Sets& sets, Clock::time_point end,
                          const std::function<void()>& tell_progress) const {
  const Json& form = configuration.at("compile");
  Json row = report::empty_row(configuration.at("name"), configuration.at("model"), form.at("target"),
                               form.at("opt_level"), form.value("desired_layout", std::string()));
  tell_progress();
  fill_row(context, resolved, configuration, sets, end, tell_progress, row);
  return row;
}

storage::JobFinish ReportRunner::run(jobs::JobContext& context) {
  const Json resolved = parse_json(context.job().resolved);
  const auto open = [&](const char* name) {
    return work_.blobs.open(Digest::parse(resolved.at(name).get<std::string>()).value());
  };
  const Sets sets{open("inputs"), resolved.at("labels").is_null() ? nullptr : open("labels")};
  const auto budget = std::chrono::duration<double>(resolved.at("time_budget_s").get<double>());
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(budget);
  const Json& configurations = resolved.at("configurations");
  size_t good = 0;
  for (size_t i = 0; i < configurations.size(); ++i) {
    const auto tell_progress = [&] {
      context.progress(
          Json{{"stage", configurations[i].at("name")}, {"done", i}, {"total", configurations.size()}}
              .dump());
    };
    const Json row = row_of(context, resolved, configurations[i], sets, end, tell_progress);
    good += row["state"] == "ok" ? 1 : 0;
    context.event(kReportRow, report_row_event(i, row, host_));
    context.log(summary_line(row, i, configurations.size()));
  }
  storage::JobFinish finish;
  finish.result = Json{{"configurations", configurations.size()}, {"ok", good}}.dump();
  return finish;
}

}  // namespace tensormill::server
