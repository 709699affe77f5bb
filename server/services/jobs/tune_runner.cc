#include "server/services/jobs/tune_runner.h"

#include <algorithm>
#include <chrono>

#include "compiler/driver/compile.h"
#include "runtime/base/error.h"
#include "runtime/base/memory_file.h"
#include "server/services/jobs/compile_action.h"
#include "server/services/jobs/remote_bench.h"
#include "server/services/jobs/tune_network.h"

namespace tensormill::server {

namespace {

constexpr int kRounds = 9;  // of measuring both packages in turns

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The set of all records of the model's kernels, durable.
Digest keep_set(const CompileTools& tools, const TuneSearch& search, const std::string& model) {
  storage::TuningSetRow set;
  set.subject = model;
  const std::vector<storage::TuningRecordRow> rows = search.measured_here();
  std::vector<std::string> lines;
  for (const storage::TuningRecordRow& row : rows) {
    set.records.push_back(row.id);
    lines.push_back(row.line);
  }
  std::sort(lines.begin(), lines.end());
  set.id = set_id(lines);
  // With the rows: another set of theirs may be removed meanwhile.
  tools.catalog.put_tuning_set(set, rows);
  return set.id;
}

Json rounds_summary(const std::vector<tune::NetworkRun>& rounds) {
  std::vector<double> runs_ms;
  for (const tune::NetworkRun& round : rounds) {
    for (const double seconds : round.seconds) runs_ms.push_back(seconds * 1e3);
  }
  return summary_of(std::move(runs_ms));
}

}  // namespace

std::unique_ptr<TuneBench> TuneRunner::bench_of(jobs::JobContext& context, const Json& resolved,
                                                TuneFiles files) {
  const int threads = resolved.at("threads").get<int>();
  const auto on = resolved.value("on", std::string());
  if (on.empty()) return std::make_unique<LocalBench>(tools_, pool_, context, benchmark_, files, threads);
  return std::make_unique<RemoteBench>(
      queue_, tools_.blobs, context, files,
      RemoteBenchOptions{on, resolved.at("compile").at("target").get<std::string>(), threads});
}

bool TuneRunner::is_elsewhere(const storage::JobRow& job) const {
  return parse_json(job.resolved).contains("on");
}

storage::JobFinish TuneRunner::run(jobs::JobContext& context) {
  const Json resolved = parse_json(context.job().resolved);
  const Json& form = resolved.at("compile");
  // Nothing of other jobs computes from here on, or only while nothing is measured.
  const bool alone = resolved.at("exclusive").get<bool>() && !resolved.contains("on");
  const auto quiet = alone ? context.quiet() : nullptr;
  GraphFiles graph(context.folder());
  import_graph(tools_, context, form, graph);
  const FileDescriptor code = memory_file("code"), tensors = memory_file("tensors");
  const TuneFiles files{code.get(), tensors.get()};
  const std::unique_ptr<TuneBench> bench = bench_of(context, resolved, files);
  TuneSearch search(tools_, context, resolved, *bench, files);
  Json result = search.run(graph);
  remember_kernels(tools_.catalog, form, search.kernels());
  const auto points = result.at("points").get<std::vector<std::vector<int64_t>>>();
  result.erase("points");
  TuneNetwork network(tools_, context, *bench, search, graph, form, resolved.at("threads").get<int>(),
                      points);
  const target::Target target = target::parse_target(form.at("target").get<std::string>(), {});
  const tune::NetworkOutcome outcome =
      tune::settle_in_network(network, target, driver::code_generator(), kRounds, now);
  result["records"] = keep_set(tools_, search, form.at("model").get<std::string>()).text();
  storage::JobFinish finish;
  finish.package = store_package(tools_, context, outcome.is_tuned ? network.tuned() : network.untuned());
  result["package"] = finish.package->id.text();
  result["tuned"] = outcome.is_tuned;
  result["before"] = rounds_summary(outcome.rounds.untuned);
  result["after"] = rounds_summary(outcome.rounds.tuned);
  result["speedup"] = outcome.gain;
  result["left_out"] = tune::to_json(outcome.left_out);
  finish.result = result.dump(-1, ' ', false, Json::error_handler_t::replace);
  return finish;
}

}  // namespace tensormill::server
