#include <chrono>
#include <utility>

#include "compiler/interpret/interpreter.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/npz/npz.h"
#include "runtime/package/package_reader.h"
#include "runtime/parallel/thread_pool.h"
#include "server/cli/children/child_commands.h"
#include "server/cli/model_input.h"
#include "server/report/confusion.h"
#include "server/report/evaluation.h"
#include "server/report/rows.h"

namespace tensormill::cli {

namespace {

enum EvaluateFd { kInputsFd = jobs::kFirstInheritedFd + 4, kLabelsFd, kEvaluationFd };

report::EvaluationOptions evaluation_options(const Json& request) {
  report::EvaluationOptions options;
  request.at("scores").get_to(options.scores);
  request.at("samples").get_to(options.samples);
  request.at("warmup").get_to(options.times.warmup);
  request.at("repeat").get_to(options.times.repeat);
  request.at("number").get_to(options.times.number);
  options.energy_root.clear();
  return options;
}

report::Truth truth_of(const Json& request) {
  report::Truth truth;
  request.at("classes").get_to(truth.names);
  if (request.at("has_labels").get<bool>())
    truth.classes = report::read_truth(*MappedFile::map(kLabelsFd, "labels"), "labels", truth.names);
  return truth;
}

}  // namespace

std::string child_evaluate(jobs::ChildChannel&, std::span<const std::string>) {
  const Json request = parse_json(MappedFile::map(kEvaluationFd, "request")->text());
  const int threads = request.at("threads").get<int>();
  const report::Truth truth = truth_of(request);
  parallel::ThreadPool pool(threads);
  exec::GraphExecutor executor(
      package::LoadedPackage::load(open_package_members(), interpret::make_interpreter),
      {threads, request.at("memory_budget").get<int64_t>()});
  exec::RunOptions options;
  options.threads = threads;
  options.deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(request.at("timeout_ms").get<int64_t>());
  const auto file = MappedFile::map(kInputsFd, "inputs");
  Json evaluation = in_context("inputs", [&] {
    return report::evaluate(executor, pool, options, npz::read_npz(file->bytes()),
                            evaluation_options(request));
  });
  Json quality = report::quality_json(evaluation, truth);
  evaluation.erase("best");
  return Json{{"evaluation", std::move(evaluation)}, {"quality", std::move(quality)}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tensormill::cli
