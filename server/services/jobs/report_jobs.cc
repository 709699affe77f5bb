// Report jobs: what they are asked for is resolved as compilations, and told as a document.
#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "server/report/html.h"
#include "server/report/rows.h"
#include "server/services/jobs/job_service.h"
#include "server/services/jobs/report_document.h"
#include "server/services/store/model_service.h"
#include "server/services/workers/work_desk.h"

namespace tensormill::server {

namespace {

/// It makes no package that a second attempt would find, and goes on from nothing.
constexpr int kReportAttempts = 2;

services::CompileRequest compile_of(const services::ReportRequest& request, const std::string& model,
                                    const std::string& target, int opt_level, const std::string& layout) {
  services::CompileRequest compile;
  compile.model = model;
  compile.target = target;
  compile.opt_level = opt_level;
  compile.input_shapes = request.input_shapes;
  compile.tuning_records = request.tuning_records;
  if (!layout.empty()) compile.desired_layout = layout;
  return compile;
}

/// What differs from configuration to configuration of one model and target; "": the compiler chooses.
std::vector<std::pair<int, std::string>> levels_and_layouts(const services::ReportRequest& request) {
  std::vector<std::pair<int, std::string>> list;
  for (const int level : request.opt_levels) {
    if (request.layouts.empty()) list.emplace_back(level, "");
    for (const std::string& layout : request.layouts) list.emplace_back(level, layout);
  }
  return list;
}

/// An id is long: for people its beginning says enough.
std::string short_name(const std::string& model) {
  constexpr size_t kShown = 12;
  const auto id = Digest::parse(model);
  return id ? id->hex().substr(0, kShown) : model;
}

/// Errors of one compilation point at its own members: at the lists that they are of, here.
template <typename Function>
auto pointing_at(size_t model, size_t target, const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    std::vector<ErrorDetail> details = error.details();
    for (ErrorDetail& detail : details) {
      if (detail.pointer == "/model") detail.pointer = "/models/" + std::to_string(model);
      if (detail.pointer == "/target") detail.pointer = "/targets/" + std::to_string(target);
    }
    Error pointed(error.code(), error.message(), std::move(details));
    pointed.set_extra_json(error.extra_json());
    throw pointed;
  }
}

}  // namespace

services::Submission JobServiceImpl::submit_report(const services::ReportRequest& request,
                                                   const services::SubmitOptions& options,
                                                   const services::CallContext& context) {
  // They may be an upload's: they must not go before the row names them.
  const storage::BlobHold hold(blobs_);
  const auto require_blob = [&](const char* pointer, const std::string& id) {
    if (!blobs_.keep(Digest::parse(id).value()))
      refuse_job(ErrorCode::kInvalidArgument, pointer, "there is no blob " + id);
  };
  require_blob("/inputs", request.inputs);
  if (request.labels) require_blob("/labels", *request.labels);
  storage::JobSubmission submission;
  Json configurations = Json::array();
  for (size_t m = 0; m < request.models.size(); ++m) {
    for (size_t t = 0; t < request.targets.size(); ++t) {
      for (const auto& [level, layout] : levels_and_layouts(request)) {
        const services::CompileRequest compile =
            compile_of(request, request.models[m], request.targets[t], level, layout);
        const auto [model, form] = pointing_at(m, t, [&] {
          const storage::ModelRow row = model_of(compile);
          return std::pair(row.id, resolve(compile, row));
        });
        submission.needs_models.push_back(model);
        configurations.push_back(
            {{"name", report::configuration_name(short_name(compile.model), compile.target, level, layout)},
             {"model", compile.model},
             {"compile", form}});
      }
    }
  }
  submission.kind = "report";
  submission.subject = submission.needs_models.at(0).text();
  submission.request = Json{{"models", request.models}}.dump();
  submission.max_attempts = kReportAttempts;
  submission.reuse_result = false;
  const Json form = {
      {"kind", "report"},           {"configurations", std::move(configurations)},
      {"inputs", request.inputs},   {"labels", request.labels ? Json(*request.labels) : Json()},
      {"classes", request.classes}, {"scores", request.scores},
      {"samples", request.samples}, {"warmup", request.warmup},
      {"repeat", request.repeat},   {"number", request.number},
      {"threads", request.threads}, {"time_budget_s", request.time_budget_s}};
  submission.needs_blobs = blobs_named_by(form);
  // It may be tried again, and its document names them.
  submission.keeps_blobs = true;
  return submit(std::move(submission), form, options, context);
}

std::string JobServiceImpl::report(const std::string& id, services::ReportForm form) {
  const storage::JobRow job = queue_.get(id);
  if (job.kind != "report") throw Error(ErrorCode::kNotFound, "job " + id + " is no report");
  const Json document = report_document(catalog_, job);
  if (form == services::ReportForm::kHtml) return report::to_html(document);
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tensormill::server
