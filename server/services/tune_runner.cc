#include "server/services/tune_runner.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/median.h"
#include "server/services/compile_action.h"
#include "server/services/tune_search.h"

namespace tensormill::server {

namespace {

constexpr int kRounds = 5;          // of measuring both packages in turns
constexpr int kRepeat = 3;          // measurements of one in a round
constexpr double kShortestMs = 20;  // of a measurement
constexpr double kSlower = 1.02;    // of the untuned model's time: beyond noise
constexpr const char* kCompileStage = R"({"stage":"compile","done":0,"total":2})";

/// A compiled package on its way.
struct Compiled {
  Compiled(const CompileTools& tools, jobs::JobContext& context, const Json& form, const GraphFiles& graph,
           const Tuned& tuned)
      : files(context.folder()) {
    compile_graph(tools, context, form, graph, tuned, files);
  }
  std::vector<int> members() const {
    return {files.metadata.get(), files.plan.get(), files.code.get(), files.params.get()};
  }
  PackageFiles files;
  std::vector<double> runs_ms;
};

/// Both in turns, so that whatever else changes on the machine changes both.
void compare(jobs::JobContext& context, parallel::ThreadPool& pool, Compiled& before, Compiled& after,
             int threads, const BenchmarkOptions& options) {
  const auto once = benchmark_package(context, pool, before.members(), {1, 2, threads}, options);
  const int number = static_cast<int>(std::clamp(kShortestMs / std::max(once.at(0), 1e-3), 1.0, 1000.0));
  for (int round = 0; round < kRounds; ++round) {
    context.progress(Json{{"stage", "measure"}, {"done", round}, {"total", kRounds}}.dump());
    for (Compiled* one : {&before, &after}) {
      const auto runs = benchmark_package(context, pool, one->members(), {kRepeat, number, threads}, options);
      one->runs_ms.insert(one->runs_ms.end(), runs.begin(), runs.end());
    }
  }
}

/// The set of all records of the model's kernels, durable.
Digest keep_set(const CompileTools& tools, const TuneSearch& search, const std::string& model) {
  storage::TuningSetRow set;
  set.subject = model;
  std::vector<storage::TuningRecordRow> rows;
  std::vector<std::string> lines;
  if (!search.kernels().empty()) {
    storage::TuningFilter filter = search.filter();
    filter.with_imported = false;
    rows = all_rows(tools.catalog, filter);
  }
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

}  // namespace

storage::JobFinish TuneRunner::run(jobs::JobContext& context) {
  const Json resolved = parse_json(context.job().resolved);
  Json form = resolved.at("compile");
  // Nothing of other jobs computes from here on, or only while nothing is measured.
  const auto quiet = resolved.at("exclusive").get<bool>() ? context.quiet() : nullptr;
  GraphFiles graph(context.folder());
  import_graph(tools_, context, form, graph);
  TuneSearch search(tools_, pool_, context, resolved);
  Json result = search.run(graph);
  const auto model = form.at("model").get<std::string>();
  result["records"] = keep_set(tools_, search, model).text();
  remember_kernels(tools_.catalog, form, search.kernels());
  form["tuning_records"] = {{"pending", {{"from", "auto"}}}};
  settle_records(tools_.records, form, search.kernels());
  context.progress(kCompileStage);
  Compiled before(tools_, context, form, graph, {});
  Compiled after(tools_, context, form, graph, tuned_of(tools_.records, form));
  compare(context, pool_, before, after, resolved.at("threads").get<int>(), benchmark_);
  const double before_ms = median(before.runs_ms);
  const double after_ms = median(after.runs_ms);
  const bool keeps = after_ms <= before_ms * kSlower;
  storage::JobFinish finish;
  finish.package = store_package(tools_.blobs, context, keeps ? after.files : before.files);
  result["package"] = finish.package->id.text();
  result["tuned"] = keeps;
  result["before"] = summary_of(std::move(before.runs_ms));
  result["after"] = summary_of(std::move(after.runs_ms));
  result["speedup"] = before_ms / after_ms;
  finish.result = result.dump(-1, ' ', false, Json::error_handler_t::replace);
  return finish;
}

}  // namespace tensormill::server
