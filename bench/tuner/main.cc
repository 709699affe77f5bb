// bench_tuner --model FILE --shapes TEXT [--tasks LIST] [--also FILE --also-shapes TEXT --also-tasks LIST]
//             [--foreign FILE --foreign-shapes TEXT --foreign-tasks LIST] [--seeds N] [--trials N]
//             [--training N] [--tested N] [--tuners A,B]
//             [--rounds N] [--table FILE] [--objects FOLDER] [--program FILE] [--out FOLDER]
//             [--sketch-trials N] [--operators PART] [--only build|trial|search|model|sketches]
// Trial cost, guided against random search, and how well the cost model ranks; writes tuner.json and tuner.md
// to FOLDER (bench/results). Stops with 1 when a bar is missed.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "bench/tuner/figures.h"
#include "bench/tuner/sketches.h"
#include "compiler/frontend/importer/importer.h"
#include "compiler/ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/median.h"
#include "server/cli/model_input.h"

namespace tensormill::bench {

namespace {

constexpr uint64_t kPointSeed = 99;

struct Options {
  std::map<std::string, std::string> values = {{"--shapes", ""},
                                               {"--also", ""},
                                               {"--also-shapes", ""},
                                               {"--also-tasks", "all"},
                                               {"--foreign", ""},
                                               {"--foreign-shapes", ""},
                                               {"--tasks", "all"},
                                               {"--foreign-tasks", "all"},
                                               {"--seeds", "5"},
                                               {"--trials", "128"},
                                               {"--training", "128"},
                                               {"--tested", "200"},
                                               {"--tuners", "xgb,random"},
                                               {"--rounds", "1"},
                                               {"--table", ""},
                                               {"--objects", ""},
                                               {"--program", "build/bin/tensormill"},
                                               {"--out", "bench/results"},
                                               {"--model", ""},
                                               {"--sketch-trials", "256"},
                                               {"--operators", ""},
                                               {"--only", ""}};
  const std::string& text(const std::string& name) const { return values.at(name); }
  int64_t number(const std::string& name) const {
    const int64_t value = std::stoll(text(name));
    if (value < 1) throw Error(ErrorCode::kInvalidArgument, name + " is 1 or more");
    return value;
  }
};

Options parse(const std::vector<std::string>& args) {
  Options options;
  for (size_t i = 0; i < args.size(); i += 2) {
    if (options.values.count(args[i]) == 0)
      throw Error(ErrorCode::kInvalidArgument, "unknown option " + args[i]);
    if (i + 1 == args.size()) throw Error(ErrorCode::kInvalidArgument, args[i] + " needs a value");
    options.values[args[i]] = args[i + 1];
  }
  if (options.text("--model").empty() && options.text("--only") != "sketches")
    throw Error(ErrorCode::kInvalidArgument, "--model is required");
  if (options.number("--rounds") > 1 && options.text("--objects").empty())
    throw Error(ErrorCode::kInvalidArgument, "--rounds needs --objects: what is built once for all of them");
  return options;
}

struct Bar {
  std::string what;
  double figure = 0, limit = 0;
  bool at_most = false;
  bool passed() const { return at_most ? figure <= limit : figure >= limit; }
};

/// Tasks with more than one point.
Tasks load(const std::string& model, const std::string& shapes, const std::string& selection,
           const target::Target& target) {
  frontend::ImportOptions import;
  import.input_shapes = cli::parse_input_shapes(shapes);
  const ir::Graph graph = cli::open_model_file(model, "", "")->import(import, ops::standard_ops());
  std::vector<tune::Task> all = tune::extract_tasks(graph, target, 3);
  Tasks tasks;
  for (size_t place : tune::parse_selection(selection, all.size())) {
    auto task = std::make_unique<TunedTask>(std::move(all[place]), target);
    if (task->space.size_estimate() > 1) tasks.push_back(std::move(task));
  }
  if (tasks.empty()) throw Error(ErrorCode::kInvalidArgument, model + ": no task has a choice");
  return tasks;
}

/// Trials as a session makes them by default: three samples of 20 ms.
Json trial_costs(const Tasks& tasks, Table& table, std::vector<Bar>& bars) {
  constexpr size_t kPerTask = 8;
  std::vector<double> all, build, run;
  for (const auto& task : tasks) {
    tune::Random random(7);
    std::set<uint64_t> seen;
    const std::vector<tune::Point> points =
        tune::sample_points(task->space, random, kPerTask,
                            [&](const tune::Point& point) { return seen.insert(point.index).second; });
    for (const TrialCost& cost : table.costs(*task, points, {})) {
      all.push_back(cost.build + cost.run);
      build.push_back(cost.build);
      run.push_back(cost.run);
    }
  }
  bars.push_back({"median cost of a trial, s", median(all), 0.25, true});
  return {{"trials", all.size()},
          {"median_seconds", median(all)},
          {"median_build_seconds", median(build)},
          {"median_run_seconds", median(run)}};
}

Json search(const Options& options, const Tasks& tasks, Table& table, std::vector<Bar>& bars) {
  const int64_t trials = options.number("--trials");
  std::vector<int64_t> marks;
  for (int64_t mark : {32, 64, 128}) {
    if (mark <= trials) marks.push_back(mark);
  }
  if (marks.empty()) marks.push_back(trials);
  Json result = Json::object();
  std::map<std::string, std::map<int64_t, double>> means;
  for (const std::string& tuner : cli::split_list(options.text("--tuners"))) {
    double search_seconds = 0;
    int64_t count = 0;
    Json seeds = Json::array();
    for (int64_t seed = 1; seed <= options.number("--seeds"); ++seed) {
      const Progress progress = run_tuner(tuner, tasks, static_cast<uint64_t>(seed), marks, table);
      Json row = Json::object();
      for (const auto& [mark, gflops] : progress.gflops) {
        means[tuner][mark] += gflops / static_cast<double>(options.number("--seeds"));
        row[std::to_string(mark)] = gflops;
      }
      seeds.push_back(row);
      search_seconds += progress.search_seconds;
      count += progress.trials;
      std::cerr << tuner << " seed " << seed << ": " << row.dump() << ", " << table.measured()
                << " measured\n";
    }
    Json mean = Json::object();
    for (const auto& [mark, gflops] : means[tuner]) mean[std::to_string(mark)] = gflops;
    result[tuner] = {
        {"mean_gflops", mean},
        {"seeds", seeds},
        {"search_seconds_a_trial", search_seconds / static_cast<double>(std::max<int64_t>(count, 1))}};
  }
  for (int64_t mark : marks) {
    if (means.count("xgb") != 0 && means.count("random") != 0)
      bars.push_back({"xgb / random, GFLOP/s of the best after " + std::to_string(mark) + " trials a task",
                      means["xgb"][mark] / means["random"][mark], 1, false});
  }
  return result;
}

Json correlations(const Options& options, const Tasks& tasks, const Tasks& foreign, Table& table,
                  std::vector<Bar>& bars) {
  const Correlations found = correlate(tasks, foreign, static_cast<size_t>(options.number("--training")),
                                       static_cast<size_t>(options.number("--tested")),
                                       static_cast<size_t>(options.number("--rounds")), kPointSeed, table);
  Json result = {{"within", Json::array()}, {"foreign", Json::array()}, {"ruler", Json::array()}};
  for (const auto& [task, value] : found.ruler)
    result["ruler"].push_back({{"task", task}, {"spearman", value}});
  const auto add = [&](const auto& rows, const char* name, const std::string& what, double limit) {
    double least = 1, sum = 0;
    for (const auto& [task, value] : rows) {
      result[name].push_back({{"task", task}, {"spearman", value}});
      least = std::min(least, value);
      sum += value;
    }
    if (rows.empty()) return;
    result[std::string(name) + "_mean"] = sum / static_cast<double>(rows.size());
    bars.push_back(
        {"Spearman, " + what + ", the least of " + std::to_string(rows.size()), least, limit, false});
  };
  add(found.within, "within", "unseen points of a task", 0.8);
  add(found.foreign, "foreign", "tasks of another model", 0.6);
  return result;
}

Json sketches(const Options& options, const target::Target& target, std::vector<Bar>& bars) {
  const std::vector<SketchResult> results =
      tune_sketches(target, std::filesystem::absolute(options.text("--program")).string(),
                    options.number("--sketch-trials"), options.text("--operators"));
  Json rows = Json::array();
  for (const SketchResult& result : results) {
    rows.push_back({{"what", result.name},
                    {"default_us", result.default_seconds * 1e6},
                    {"best_us", result.best_seconds * 1e6},
                    {"gain", result.default_seconds / result.best_seconds},
                    {"trials", result.trials},
                    {"failed", result.failed}});
    std::cerr << rows.back().dump() << "\n";
  }
  bars.push_back({"automatic scheduler: default / best, the mean", mean_gain(results), 1.3, false});
  return rows;
}

std::string markdown(const Json& report, const std::vector<Bar>& bars) {
  std::ostringstream text;
  text.precision(4);
  text << "# The tuner\n\n| bar | figure | limit | |\n|---|---|---|---|\n";
  for (const Bar& bar : bars)
    text << "| " << bar.what << " | " << bar.figure << " | " << (bar.at_most ? "≤ " : "≥ ") << bar.limit
         << " | " << (bar.passed() ? "pass" : "FAIL") << " |\n";
  text << "\n```\n" << report.dump(1) << "\n```\n";
  return text.str();
}

void search_templates(const Options& options, const target::Target& target, Json& report,
                      std::vector<Bar>& bars) {
  Table table(target, std::filesystem::absolute(options.text("--program")).string(), options.text("--table"),
              options.text("--objects"));
  Tasks tasks = load(options.text("--model"), options.text("--shapes"), options.text("--tasks"), target);
  // Of a second model those that the first one has not.
  std::set<std::string> keys;
  for (const auto& task : tasks) keys.insert(task->task.key());
  if (!options.text("--also").empty()) {
    for (auto& task :
         load(options.text("--also"), options.text("--also-shapes"), options.text("--also-tasks"), target)) {
      if (keys.insert(task->task.key()).second) tasks.push_back(std::move(task));
    }
  }
  Tasks foreign;
  if (!options.text("--foreign").empty())
    foreign = load(options.text("--foreign"), options.text("--foreign-shapes"),
                   options.text("--foreign-tasks"), target);
  report["tasks"] = Json::array();
  for (const auto& task : tasks)
    report["tasks"].push_back(
        {{"name", task->task.name}, {"args", task->task.args}, {"points", task->space.size_estimate()}});
  const std::string& only = options.text("--only");
  if (only == "build") {
    const auto training = static_cast<size_t>(options.number("--training")),
               tested = static_cast<size_t>(options.number("--tested"));
    for (const auto& task : tasks) prepare(*task, training + tested, kPointSeed, table);
    for (const auto& task : foreign) prepare(*task, tested, kPointSeed, table);
    return;
  }
  if (only != "search" && only != "model") report["trial"] = trial_costs(tasks, table, bars);
  if (only != "trial" && only != "model") report["search"] = search(options, tasks, table, bars);
  if (only != "trial" && only != "search")
    report["cost_model"] = correlations(options, tasks, foreign, table, bars);
  report["measured"] = table.measured();
  report["failed"] = table.failed();
}

int run(const Options& options) {
  const target::Target target = target::parse_target("llvm -mcpu=native -num-cores=1", target::host_target());
  const std::string& only = options.text("--only");
  std::vector<Bar> bars;
  Json report = {{"target", target.canonical()}};
  if (only != "sketches") search_templates(options, target, report, bars);
  if (only.empty() || only == "sketches") report["sketches"] = sketches(options, target, bars);
  const std::string text = markdown(report, bars);
  std::ofstream(options.text("--out") + "/tuner.json") << report.dump(1) << "\n";
  std::ofstream(options.text("--out") + "/tuner.md") << text;
  std::cout << text.substr(0, text.find("\n```"));
  return std::all_of(bars.begin(), bars.end(), [](const Bar& bar) { return bar.passed(); }) ? 0 : 1;
}

}  // namespace

}  // namespace tensormill::bench

int main(int argc, char** argv) {
  try {
    return tensormill::bench::run(tensormill::bench::parse({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    std::cerr << "bench_tuner: " << error.what() << "\n";
    return 2;
  }
}
