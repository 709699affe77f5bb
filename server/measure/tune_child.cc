#include "server/measure/tune_child.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "compiler/driver/compile.h"
#include "compiler/ir/variants.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/layouts/desired_layout.h"
#include "compiler/tune/session.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "server/measure/exchange.h"
#include "server/measure/tune_report.h"

namespace tensormill::measure {

namespace {

/// What the parent passes, in its order.
struct Fd {
  enum : int { kText = jobs::kFirstInheritedFd, kConstants, kKnown, kCode, kTensor, kAnswer };
};

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The lines with which the parent answers.
class Answers {
public:
  Json next() {
    size_t end = pending_.find('\n');
    while (end == std::string::npos) {
      char buffer[4096];
      const ssize_t got = ::read(Fd::kAnswer, buffer, sizeof(buffer));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw Error(ErrorCode::kCancelled, "the parent gives no more answers");
      pending_.append(buffer, static_cast<size_t>(got));
      end = pending_.find('\n');
    }
    const std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return parse_json(line);
  }

private:
  std::string pending_;
};

class ParentMeasurer final : public tune::Measurer {
public:
  ParentMeasurer(jobs::ChildChannel& channel, Answers& answers, bool batches)
      : channel_(channel), answers_(answers), batches_(batches), exchange_(Fd::kCode, Fd::kTensor) {}
  void set_task(const tune::Task&, const tune::Workload& workload) override {
    exchange_.set_workload(workload);
  }
  tune::Measurement measure(const codegen::Object& object, const plan::KernelWorkspace& workspace,
                            const tune::MeasureOptions& options) override {
    const tune::Run run{object, workspace};
    return exchange_.read(0, ask(std::span(&run, 1), options).at(0));
  }
  void measure_all(std::span<const tune::Run> runs, const tune::MeasureOptions& options,
                   const std::function<void(size_t, tune::Measurement)>& take) override {
    if (!batches_) return Measurer::measure_all(runs, options, take);
    if (runs.empty()) return;
    const Json answers = ask(runs, options);
    for (size_t i = 0; i < runs.size(); ++i) take(i, exchange_.read(i, answers.at(i)));
  }

private:
  Json ask(std::span<const tune::Run> runs, const tune::MeasureOptions& options) {
    const std::vector<Json> requests = exchange_.requests(runs, options);
    channel_.event("measure", Json{{"requests", requests}, {"timeout_s", options.timeout_seconds}}.dump());
    return answers_.next().at("answers");
  }

  jobs::ChildChannel& channel_;
  Answers& answers_;
  const bool batches_;
  Exchange exchange_;
};

/// What is known before the first trial.
struct Known {
  std::vector<tune::Record> records;
  size_t own = 0;              ///< of the records, the job's earlier attempts', which come first
  std::set<std::string> done;  ///< tasks that need no more trials
};

/// Times at other extents than those that the job names tell nothing of a kernel at these. The job's own
/// records are of its extents, and stay in front.
void forget_other_extents(Known& known, const std::vector<tune::Task>& tasks) {
  std::map<std::string, std::string> args;
  for (const tune::Task& task : tasks) {
    if (task.symbolic) args.emplace(task.key(), task.args);
  }
  std::set<std::string> measured;
  std::erase_if(known.records, [&](const tune::Record& record) {
    const auto task = args.find(record.task_key);
    if (task == args.end()) return false;
    if (task->second != record.args) return true;
    measured.insert(record.task_key);
    return false;
  });
  std::erase_if(known.done,
                [&](const std::string& key) { return args.contains(key) && !measured.contains(key); });
}

Known ask_known(jobs::ChildChannel& channel, Answers& answers, const std::vector<tune::Task>& tasks,
                bool at_named_extents) {
  Json keys = Json::array();
  for (const tune::Task& task : tasks) keys.push_back(task.key());
  channel.event("tasks", keys.dump());
  const Json answer = answers.next();
  Known known;
  known.records = tune::parse_records(MappedFile::map(Fd::kKnown, "known records")->text());
  answer.at("own").get_to(known.own);
  answer.at("done").get_to(known.done);
  if (at_named_extents) forget_other_extents(known, tasks);
  // The algorithms of a layer are measured against each other, so all of them are done or none.
  std::set<std::string> open_layers;
  for (const tune::Task& task : tasks) {
    if (!task.layer.empty() && !known.done.contains(task.key())) open_layers.insert(task.layer);
  }
  for (const tune::Task& task : tasks) {
    if (open_layers.contains(task.layer)) known.done.erase(task.key());
  }
  return known;
}

tune::TuneOptions options_from(const Json& request) {
  tune::TuneOptions options;
  request.at("tuner").get_to(options.tuner);
  request.at("autoscheduler").get_to(options.sketches);
  request.at("trials").get_to(options.trials);
  request.at("time_budget_s").get_to(options.time_budget_seconds);
  request.at("early_stopping").get_to(options.early_stopping);
  request.at("seed").get_to(options.seed);
  request.at("build_threads").get_to(options.build_threads);
  request.at("threads").get_to(options.measure.threads);
  request.at("number").get_to(options.measure.number);
  request.at("repeat").get_to(options.measure.repeat);
  request.at("min_repeat_ms").get_to(options.measure.min_repeat_ms);
  request.at("cpu").get_to(options.cpu);
  options.codegen = driver::code_generator();
  return options;
}

/// Whether TuneSession::resume takes a record of the kernel that has this space.
bool counts(const tune::Record& record, const tune::Space& space, const tune::TuneOptions& options,
            const std::string& target) {
  if (record.final || record.target != target || record.cpu != options.cpu ||
      record.codegen != options.codegen || record.threads != options.measure.threads) {
    return false;
  }
  const std::optional<tune::Point> point = space.at(record.index);
  return point && schedule::print(point->schedule) == record.schedule;
}

/// Budgets are the job's: trials of others are known for nothing, those of the job's earlier attempts have
/// spent their part.
void adjust_budgets(tune::TuneOptions& options, const Known& known, const std::vector<tune::Task>& tasks,
                    const target::Target& target) {
  std::map<std::string, tune::Space> spaces;
  for (const tune::Task& task : tasks) spaces.try_emplace(task.key(), task, target, options.sketches);
  double spent = 0;
  for (size_t i = 0; i < known.records.size(); ++i) {
    const auto space = spaces.find(known.records[i].task_key);
    if (space == spaces.end() || !counts(known.records[i], space->second, options, target.canonical()))
      continue;
    if (i < known.own) {
      spent += known.records[i].all_seconds;
    } else {
      ++options.trials;
    }
  }
  if (options.time_budget_seconds > 0)
    options.time_budget_seconds = std::max(options.time_budget_seconds - spent, 1e-3);
}

/// Those that the job names.
ShapeBuckets extents_of(const Json& request) { return request.value("extents", ShapeBuckets()); }

/// The tasks of all shapes that get kernels of their own, and of what no free extent reaches, each once.
std::vector<tune::Task> tasks_of(const ir::Variants& variants, const target::Target& target,
                                 const Json& request, const std::vector<std::vector<int64_t>>& extents) {
  const auto layout = passes::parse_desired_layout(
      request.value("desired_layout", std::string()),
      request.value("desired_layout_ops", std::vector<std::string>()), ops::standard_ops());
  tune::SymbolicOptions options;
  options.opt_level = request.at("opt_level").get<int>();
  options.layout = layout;
  options.extents = extents;
  options.may_leave_out = extents_of(request).empty();
  // A worker of another kind measures what is not computed here.
  options.runs_here = !request.at("batches").get<bool>();
  return tune::package_tasks(variants, target, options);
}

}  // namespace

std::string child_tune(jobs::ChildChannel& channel, std::span<const std::string> arguments) {
  TM_CHECK(arguments.size() == 1, "child-tune needs its request");
  const Json request = parse_json(arguments[0]);
  const target::Target target = target::parse_target(request.at("target").get<std::string>(), {});
  tune::TuneOptions options = options_from(request);
  const auto text = MappedFile::map(Fd::kText, "graph");
  const auto constants = MappedFile::map(Fd::kConstants, "graph constants");
  const ir::Variants variants =
      ir::read_variants(request.at("variants").dump(), *text, constants, ops::standard_ops());
  const std::vector<std::vector<int64_t>> points = tune::named_extents(variants, extents_of(request));
  std::vector<tune::Task> tasks = tasks_of(variants, target, request, points);
  Answers answers;
  const Known known = ask_known(channel, answers, tasks, !extents_of(request).empty());
  std::vector<tune::Task> selected;
  Json reused = Json::array();
  for (size_t place : tune::parse_selection(request.at("tasks").get<std::string>(), tasks.size())) {
    if (known.done.contains(tasks[place].key())) {
      reused.push_back(reused_task(tasks[place], target, known.records));
    } else {
      selected.push_back(std::move(tasks[place]));
    }
  }
  adjust_budgets(options, known, selected, target);
  ParentMeasurer measurer(channel, answers, request.at("batches").get<bool>());
  TuneReport report(channel, std::move(reused), now);
  tune::TuneHooks hooks;
  hooks.clock = &now;
  hooks.record = [&](const tune::Record& record) { report.record(record); };
  hooks.progress = [&](const tune::TuneSession& session) { report.progress(session); };
  const std::unique_ptr<codegen::Backend> backend = codegen::make_llvm_backend();
  tune::TuneSession session(std::move(selected), target, options, *backend, measurer, hooks);
  const int64_t resumed = session.resume(known.records);
  const int64_t others = std::min(resumed, options.trials - request.at("trials").get<int64_t>());
  report.start(session, others, resumed - others);
  if (!session.tasks().empty()) session.run();
  Json result = report.result(session);
  result["extents"] = tune::extents_json(points, variants.free_dims);
  result["points"] = points;
  return result.dump();
}

}  // namespace tensormill::measure
