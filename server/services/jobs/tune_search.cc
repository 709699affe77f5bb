#include "server/services/jobs/tune_search.h"

#include <set>
#include <utility>

#include "compiler/driver/compile.h"
#include "runtime/base/error.h"
#include "runtime/base/memory_file.h"
#include "server/jobs/pipe.h"
#include "server/measure/exchange.h"
#include "server/services/jobs/benchmark.h"
#include "server/services/jobs/compile_action.h"

namespace tensormill::server {

namespace {

/// A trial's line is some kilobytes, and a job may have many thousands.
constexpr uint64_t kMaxOutput = uint64_t{4} << 30;
/// Of other models' kernels, from which the cost model starts.
constexpr int kModelRows = 4000;

}  // namespace

TuneSearch::TuneSearch(const CompileTools& tools, jobs::JobContext& context, const Json& resolved,
                       TuneBench& bench, TuneFiles files)
    : tools_(tools),
      context_(context),
      resolved_(resolved),
      bench_(bench),
      files_(files),
      known_(memory_file("known records")) {}

TuningPlace TuneSearch::place() const { return {bench_.cpu(), resolved_.at("threads").get<int>()}; }

storage::TuningFilter TuneSearch::filter() const {
  storage::TuningFilter filter;
  filter.tasks = kernels_;
  filter.target = resolved_.at("compile").at("target").get<std::string>();
  filter.cpu = bench_.cpu();
  filter.threads = resolved_.at("threads").get<int>();
  filter.generator = driver::code_generator();
  return filter;
}

std::vector<storage::TuningRecordRow> TuneSearch::measured_here() const {
  // A model without kernels has no records, and no list is no filter.
  if (kernels_.empty()) return {};
  storage::TuningFilter mine = filter();
  mine.with_imported = false;
  return all_rows(tools_.catalog, mine);
}

jobs::ChildSpec TuneSearch::spec(const GraphFiles& graph, int answers) const {
  const Json& compile = resolved_.at("compile");
  Json request = resolved_;
  request.erase("compile");
  request["target"] = compile.at("target");
  request["opt_level"] = compile.at("opt_level");
  request.update(layout_options(compile));
  request["variants"] = graph.variants;
  request["build_threads"] = tools_.options.threads;
  request["cpu"] = bench_.cpu();
  request["batches"] = bench_.takes_batches();
  jobs::ChildSpec spec;
  spec.command = "child-tune";
  spec.limits.kind = jobs::ChildKind::kTune;
  spec.arguments = {request.dump()};
  spec.descriptors = {graph.text.get(), graph.constants.get(), known_.get(),
                      files_.code,      files_.tensors,        answers};
  spec.limits.data_bytes = tools_.options.memory;
  spec.limits.nice = jobs::kJobNice;
  spec.max_output_bytes = kMaxOutput;
  return spec;
}

Json TuneSearch::run(const GraphFiles& graph) {
  jobs::Pipe pipe = jobs::make_pipe_to_child();
  answers_ = std::move(pipe.write);
  const auto on_event = [&](const std::string& type, const std::string& json) {
    // The child has it. Who writes to one that was ended must not wait for ever.
    pipe.read = FileDescriptor();
    if (type == "tasks") {
      on_tasks(parse_json(json));
    } else if (type == "measure") {
      on_measure(parse_json(json));
    } else if (type == "record") {
      on_record(parse_json(json));
    } else {
      return false;
    }
    return true;
  };
  Json report = parse_json(context_.run_child(spec(graph, pipe.read.get()), on_event));
  report["roof"] =
      bench_.roof(target::parse_target(resolved_.at("compile").at("target").get<std::string>(), {}));
  return report;
}

void TuneSearch::on_tasks(const Json& keys) {
  keys.get_to(kernels_);
  std::string text, others;
  size_t own = 0;
  std::set<std::string> done;
  for (const storage::TuningRecordRow& row : measured_here()) {
    if (row.job == context_.job().id) {
      ++own;
      text += row.line + "\n";
    } else {
      others += row.line + "\n";
    }
    // An earlier attempt of this job may have kept its set and not come to its end.
    const bool others_set = row.in_set && row.job != context_.job().id;
    if (others_set && !resolved_.at("again").get<bool>()) done.insert(row.task);
  }
  if (!kernels_.empty() && !resolved_.at("prior_records").is_null()) {
    storage::TuningFilter prior = filter();
    prior.set = Digest::parse(resolved_.at("prior_records").get<std::string>());
    for (const storage::TuningRecordRow& row : all_rows(tools_.catalog, prior)) {
      if (row.imported) others += row.line + "\n";
    }
  }
  storage::TuningFilter everyone = filter();
  everyone.tasks.clear();
  const std::set<std::string> mine(kernels_.begin(), kernels_.end());
  for (const auto& row : tools_.catalog.list_tuning_records(everyone, {0, kModelRows}).items) {
    if (!mine.contains(row.task)) others += row.line + "\n";
  }
  write_all(known_.get(), text + others, "known records");
  answer({{"own", own}, {"done", done}});
}

void TuneSearch::on_measure(const Json& request) {
  answer({{"answers", bench_.measure(request.at("requests"), request.at("timeout_s").get<double>())}});
}

void TuneSearch::on_record(Json record) {
  const std::string line = record.at("line").get<std::string>();
  // On disk before anybody is told.
  tools_.catalog.put_tuning_records({row_of(tune::record_from_line(line), line, context_.job().id)});
  record.erase("line");
  context_.event("trial", record.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void TuneSearch::answer(const Json& line) {
  // How a child has gone is told by run_child. One that does not read is bounded as one that does not end:
  // by what it holds, and by who cancels the job.
  (void)jobs::write_pipe(answers_.get(), line.dump() + "\n", jobs::kNoDeadline,
                         [this] { context_.keep_alive(); });
}

}  // namespace tensormill::server
