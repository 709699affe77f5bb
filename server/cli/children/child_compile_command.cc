#include "compiler/driver/compile.h"
#include "compiler/ir/variants.h"
#include "compiler/ops/ops.h"
#include "compiler/package/writer.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "server/cli/children/child_commands.h"
#include "server/cli/layout_options.h"

namespace tensormill::cli {

namespace {

/// Where the parent put what this child writes.
enum Target : int {
  kMetadataFd = jobs::kFirstInheritedFd + 2,
  kPlanFd,
  kCodeFd,
  kParamsFd,
  kDumpsFd,
  kSchedulesFd
};

driver::CompileOptions compile_options_from(const Json& request) {
  driver::CompileOptions options;
  // The string is canonical, so no host is needed to read it.
  options.target = target::parse_target(request.at("target").get<std::string>(), {});
  request.at("opt_level").get_to(options.opt_level);
  request.at("disabled_pass").get_to(options.disabled_passes);
  options.layout = layout_of(request);
  options.verify = driver::parse_verify_mode(request.at("verify").get<std::string>());
  request.at("host_runs_target").get_to(options.host_runs_target);
  request.at("model_digest").get_to(options.model_digest);
  request.at("model_format").get_to(options.model_format);
  request.at("recorded_options").get_to(options.recorded_options);
  request.at("dumps").get_to(options.dumps);
  request.at("threads").get_to(options.threads);
  const auto schedules = MappedFile::map(kSchedulesFd, "schedules");
  const Json tuned_json = parse_json(schedules->text());
  tuned_json.at("algorithms").get_to(options.algorithms);
  for (const auto& [kernel, tuned] : tuned_json.at("schedules").items()) {
    options.schedules[kernel] = {tuned[0].get<std::string>(), tuned[1].get<std::string>(),
                                 tuned[2].get<std::string>()};
  }
  if (!options.schedules.empty()) options.schedules_reason = "no record of the kernel";
  return options;
}

}  // namespace

std::string child_compile(jobs::ChildChannel& channel, std::span<const std::string> arguments) {
  TM_CHECK(arguments.size() == 1, "child-compile needs its request");
  const Json request = parse_json(arguments[0]);
  const driver::CompileOptions options = compile_options_from(request);
  const auto text = MappedFile::map(jobs::kFirstInheritedFd, "graph");
  const auto constants = MappedFile::map(jobs::kFirstInheritedFd + 1, "graph constants");
  const ir::Variants variants =
      ir::read_variants(request.at("variants").dump(), *text, constants, ops::standard_ops());
  driver::CompileHooks hooks;
  hooks.progress = [&](const driver::Progress& progress) {
    channel.progress(
        Json{{"stage", progress.stage}, {"done", progress.done}, {"total", progress.total}}.dump());
  };
  const driver::CompileResult result = driver::compile(variants, options, hooks);
  write_all(kMetadataFd, result.metadata_json, package::kMetadataMember);
  write_all(kPlanFd, result.plan_json, package::kPlanMember);
  write_all(kCodeFd, result.code, package::kCodeMember);
  package::write_params(kParamsFd, result.params, result.params_bytes, package::kParamsMember);
  write_all(kDumpsFd, Json(result.dumps).dump(-1, ' ', false, Json::error_handler_t::replace), "dumps");
  Json times = Json::object();
  for (const driver::PhaseTime& time : result.times) times[time.phase] = time.ms;
  Json answer = {{"times_ms", std::move(times)}};
  Json warnings = Json::array();
  for (const driver::RefusedRecord& refused : result.refused_records) warnings.push_back(refused.what);
  if (!result.shape_warning.empty()) warnings.push_back(result.shape_warning);
  if (options.layout) answer["layout"] = layout_json(*options.layout, result.layout);
  if (!warnings.empty()) answer["warnings"] = std::move(warnings);
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tensormill::cli
