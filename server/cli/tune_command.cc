#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "compiler/driver/compile.h"
#include "compiler/driver/generic_planner.h"
#include "compiler/ops/ops.h"
#include "compiler/target/fingerprint.h"
#include "compiler/tune/session.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/median.h"
#include "server/cli/cli.h"
#include "server/cli/layout_options.h"
#include "server/cli/model_input.h"
#include "server/cli/terminal.h"
#include "server/cli/tune_network.h"
#include "server/cli/tune_on.h"
#include "server/measure/worker.h"
#include "server/services/deployments/host_runs.h"

namespace tensormill::cli {

namespace {

struct TuneArguments {
  std::string model;
  std::string format;
  std::string signature;
  std::string quantized;
  std::string target = "llvm -mcpu=native";
  std::string input_shapes;
  std::string input_values;
  std::string extents;
  LayoutArguments layout;
  std::string tasks = "all";
  std::string output;
  std::string prior_records;
  double timeout = 10;
  int threads = 0;
  int network_rounds = 9;
  tune::TuneOptions options;
  RunOnArguments elsewhere;
};

constexpr int kOptLevel = 3;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The model as compile imports it.
ir::Variants variants_of(const TuneArguments& arguments, driver::GenericPlanner& planner) {
  frontend::ImportOptions import;
  import.input_shapes = parse_input_shapes(arguments.input_shapes);
  const std::unique_ptr<frontend::Importer> model =
      open_model_file(arguments.model, arguments.format, arguments.signature);
  bind_input_values(arguments.input_values, *model, import);
  frontend::set_quantized(*model, arguments.quantized, import);
  return model->import_for_package(import, {}, ops::standard_ops(),
                                   [&planner](const ir::SymbolicModel& symbolic, std::string* reason) {
                                     return planner.takes(symbolic, reason);
                                   });
}

/// Each task with its default's time, which is measured: all trials go to the defaults.
int list_tasks(std::vector<tune::Task> tasks, const target::Target& target, tune::TuneOptions options,
               bool json) {
  options.trials = static_cast<int64_t>(tasks.size());
  options.time_budget_seconds = 0;
  options.final_rounds = 0;
  tune::TuneHooks hooks;
  hooks.clock = &now;
  hooks.record = [](const tune::Record&) {};
  measure::WorkerMeasurer measurer;
  const std::unique_ptr<codegen::Backend> backend = codegen::make_llvm_backend();
  tune::TuneSession session(std::move(tasks), target, options, *backend, measurer, hooks);
  session.run();
  Json list = Json::array();
  for (size_t i = 0; i < session.tasks().size(); ++i) {
    const tune::TaskState& state = session.tasks()[i];
    const tune::Task& task = state.task;
    // A default that failed has no time; canonical JSON has no infinity.
    const bool ran = std::isfinite(state.default_seconds);
    const double seconds = ran ? state.default_seconds : 0;
    list.push_back(
        {{"task", i},
         {"name", task.name},
         {"args", task.args},
         {"key", task.key()},
         {"layer", task.layer},
         {"algorithm", task.algorithm},
         {"calls", task.calls},
         {"flops", task.kernel.flops},
         {"bytes", task.bytes},
         {"default_ms", seconds * 1e3},
         {"share", ran ? seconds * static_cast<double>(task.calls) / session.default_latency() : 0},
         {"points", state.space->size_estimate()}});
  }
  if (json) {
    print_json(list);
    return 0;
  }
  std::cout << "task  calls    MFLOP    MiB  default ms  share %    points  algorithm  what\n";
  for (const Json& row : list) {
    std::cout << std::setw(4) << row["task"].get<size_t>() << std::setw(7) << row["calls"].get<int64_t>()
              << std::fixed << std::setprecision(1) << std::setw(9) << row["flops"].get<double>() / 1e6
              << std::setw(7) << row["bytes"].get<double>() / (1 << 20) << std::setprecision(4)
              << std::setw(12) << row["default_ms"].get<double>() << std::setprecision(1) << std::setw(9)
              << row["share"].get<double>() * 100 << std::setw(10) << row["points"].get<uint64_t>()
              << std::setw(11) << row["algorithm"].get<std::string>() << "  "
              << row["name"].get<std::string>() << "  " << row["args"].get<std::string>() << "\n";
  }
  return 0;
}

/// "[########............]" of a part of the whole.
std::string bar(double part) {
  constexpr size_t kWidth = 24;
  const auto full = static_cast<size_t>(std::clamp(part, 0.0, 1.0) * kWidth);
  return "[" + std::string(full, '#') + std::string(kWidth - full, '.') + "] ";
}

/// "  failed: 3 instantiation, 1 runtime_device"; "" while nothing failed.
std::string failures_text(const tune::TuneSession& session) {
  std::map<std::string, int64_t> causes;
  for (const tune::TaskState& state : session.tasks()) {
    for (const auto& [cause, count] : state.failures) causes[cause] += count;
  }
  std::string text;
  for (const auto& [cause, count] : causes)
    text += (text.empty() ? "  failed: " : ", ") + std::to_string(count) + " " + cause;
  return text;
}

/// On a terminal one line with a bar that is written over; else a line each time.
class ProgressLine {
public:
  explicit ProgressLine(double time_budget) : time_budget_(time_budget) {}
  void print(const tune::TuneSession& session, bool last) const {
    std::ostringstream line;
    const double spent = now() - start_;
    const double tried = static_cast<double>(session.trials()) /
                         static_cast<double>(std::max<int64_t>(session.trial_budget(), 1));
    const double part = std::max(tried, time_budget_ > 0 ? spent / time_budget_ : 0);
    if (terminal_) line << "\r\033[K" << bar(last ? 1 : part);
    line << std::fixed << std::setprecision(3) << "trials " << session.trials() << "/"
         << session.trial_budget() << "  model " << session.default_latency() * 1e3 << " -> "
         << session.best_latency() * 1e3 << " ms";
    line << failures_text(session);
    if (terminal_ && !last && part > 0)
      line << "  " << std::setprecision(0) << spent * (1 - std::min(part, 1.0)) / part << " s left";
    std::cerr << line.str() << (!terminal_ || last ? "\n" : "") << std::flush;
  }

private:
  bool terminal_ = ::isatty(2) != 0;
  double start_ = now();
  double time_budget_;
};

/// For a program that shows the progress itself: one object a line on standard error.
void print_progress_json(const tune::TuneSession& session) {
  Json line = {{"trials", session.trials()}, {"trial_budget", session.trial_budget()}};
  // Before the first measurement there is no time; canonical JSON has no infinity.
  if (std::isfinite(session.default_latency())) line["default_ms"] = session.default_latency() * 1e3;
  if (std::isfinite(session.best_latency())) line["best_ms"] = session.best_latency() * 1e3;
  std::cerr << line.dump() << std::endl;
}

Json report_of(const tune::TuneSession& session) {
  Json tasks = Json::array();
  for (const tune::TaskState& state : session.tasks()) {
    Json failures = Json::object();
    for (const auto& [cause, count] : state.failures) {
      const auto first = state.first.find(cause);
      failures[cause] = {{"count", count}, {"first", first == state.first.end() ? "" : first->second}};
    }
    const double flops = static_cast<double>(state.task.kernel.flops);
    tasks.push_back({{"name", state.task.name},
                     {"key", state.task.key()},
                     {"layer", state.task.layer},
                     {"algorithm", state.task.algorithm},
                     {"rejected", state.rejected},
                     {"calls", state.task.calls},
                     {"trials", state.attempts},
                     {"default_ms", state.default_seconds * 1e3},
                     {"best_ms", state.best_seconds * 1e3},
                     {"gflops", flops / state.best_seconds / 1e9},
                     {"failures", failures}});
  }
  return {{"trials", session.trials()},
          {"default_ms", session.default_latency() * 1e3},
          {"best_ms", session.best_latency() * 1e3},
          {"build_seconds", session.build_seconds()},
          {"run_seconds", session.run_seconds()},
          {"search_seconds", session.search_seconds()},
          {"tasks", tasks}};
}

void add_network(Json& report, const tune::NetworkOutcome& outcome) {
  const auto middle_ms = [](const std::vector<tune::NetworkRun>& rounds) {
    std::vector<double> each;
    for (const tune::NetworkRun& round : rounds) each.push_back(median(round.seconds) * 1e3);
    return median(std::move(each));
  };
  report["network"] = {{"untuned_ms", middle_ms(outcome.rounds.untuned)},
                       {"tuned_ms", middle_ms(outcome.rounds.tuned)},
                       {"speedup", outcome.gain},
                       {"tuned", outcome.is_tuned},
                       {"left_out", tune::to_json(outcome.left_out)}};
}

/// " at N=24, at N=60 (geometric mean)"; "" where no extent is free.
std::string extents_text(const Json& extents) {
  std::string text;
  for (const Json& point : extents) {
    std::string dims;
    for (const auto& [name, extent] : point.items())
      dims += (dims.empty() ? "" : ";") + name + "=" + std::to_string(extent.get<int64_t>());
    text += (text.empty() ? " at " : ", at ") + dims;
  }
  return text + (extents.size() > 1 ? " (geometric mean)" : "");
}

void print_network(const Json& network) {
  std::cout << std::setprecision(3) << "the model: " << network["untuned_ms"].get<double>() << " -> "
            << network["tuned_ms"].get<double>() << " ms" << extents_text(network["extents"]);
  if (!network["tuned"]) std::cout << ": not faster, so the records are against all that was found";
  std::cout << "\n";
  for (const Json& part : network["left_out"]) {
    std::cout << "  left out, as it does not pay within the model: " << part["name"].get<std::string>()
              << " (" << part["untuned_ms"].get<double>() << " -> " << part["tuned_ms"].get<double>()
              << " ms)\n";
  }
}

void print_report(const Json& report) {
  std::cout << " calls  trials  default ms    best ms  GFLOP/s  algorithm  what\n" << std::fixed;
  for (const Json& task : report["tasks"]) {
    if (task["trials"] == 0) continue;
    std::cout << std::setw(6) << task["calls"].get<int64_t>() << std::setw(8) << task["trials"].get<int64_t>()
              << std::setprecision(4) << std::setw(12) << task["default_ms"].get<double>() << std::setw(11)
              << task["best_ms"].get<double>() << std::setprecision(1) << std::setw(9)
              << task["gflops"].get<double>() << std::setw(11) << task["algorithm"].get<std::string>() << "  "
              << task["name"].get<std::string>() << "\n";
    for (const auto& [cause, what] : task["failures"].items())
      std::cout << "        " << what["count"] << " x " << cause << ": " << what["first"].get<std::string>()
                << "\n";
  }
  std::cout << std::setprecision(3) << "kernels of the model: " << report["default_ms"].get<double>()
            << " -> " << report["best_ms"].get<double>() << " ms after " << report["trials"]
            << " trials; built for " << std::setprecision(1) << report["build_seconds"].get<double>()
            << " s, ran for " << report["run_seconds"].get<double>() << " s, searched for "
            << report["search_seconds"].get<double>() << " s\n";
  if (report.contains("network")) print_network(report["network"]);
}

std::vector<tune::Record> known_records(const TuneArguments& arguments) {
  std::vector<tune::Record> records;
  const auto add = [&](const std::string& path) {
    for (tune::Record& record : read_record_file(path)) records.push_back(std::move(record));
  };
  if (!arguments.prior_records.empty()) add(arguments.prior_records);
  if (std::filesystem::exists(arguments.output)) add(arguments.output);
  return records;
}

/// The records file grows in its place.
void check_records_output(const std::string& path) {
  if (path.empty()) throw Error(ErrorCode::kUsage, "-o RECORDS.json is required");
  check_output("-o", path);
  if (std::filesystem::exists(path) && ::access(path.c_str(), R_OK | W_OK) != 0)
    throw Error(ErrorCode::kUsage, "-o " + path + ": the file is not readable and writable");
}

/// A worker of a server measures; the search is the server's.
int tune_elsewhere(const TuneArguments& arguments, const GlobalOptions& globals) {
  const tune::TuneOptions& options = arguments.options;
  if (!arguments.prior_records.empty() || options.measure.flush_cache || arguments.tasks == "list")
    throw Error(ErrorCode::kUsage, "--on goes without --prior-records, --flush-cache and --tasks list");
  if (arguments.target.find("native") != std::string::npos)
    throw Error(ErrorCode::kUsage, "--on needs --target: what is native to a worker is not known here");
  if (arguments.output.empty()) throw Error(ErrorCode::kUsage, "-o RECORDS.json is required");
  check_output("-o", arguments.output);
  Json job = {{"target", arguments.target},
              {"opt_level", kOptLevel},
              {"trials", options.trials},
              {"time_budget_s", options.time_budget_seconds},
              {"tuner", options.tuner},
              {"autoscheduler", options.sketches},
              {"tasks", arguments.tasks},
              {"early_stopping", options.early_stopping},
              {"threads", arguments.threads},
              {"number", options.measure.number},
              {"repeat", options.measure.repeat},
              {"min_repeat_ms", options.measure.min_repeat_ms},
              {"seed", options.seed}};
  for (const auto& [name, shape] : parse_input_shapes(arguments.input_shapes))
    job["input_shapes"][name] = dims_to_json(shape);
  if (!arguments.extents.empty()) job["extents"] = parse_shape_buckets(arguments.extents);
  if (!arguments.input_values.empty()) job["input_values"] = parse_json(arguments.input_values);
  if (!arguments.signature.empty()) job["signature"] = arguments.signature;
  if (!arguments.quantized.empty()) job["quantized"] = arguments.quantized;
  if (layout_of(arguments.layout)) job["desired_layout"] = arguments.layout.layout;
  if (!arguments.layout.ops.empty()) job["desired_layout_ops"] = split_list(arguments.layout.ops);
  const Json result =
      tune_on(arguments.elsewhere, {arguments.model, arguments.output, std::move(job)}, globals);
  if (globals.json) {
    print_json(result);
    return 0;
  }
  std::cout << std::fixed << std::setprecision(3) << "the model on " << arguments.elsewhere.on << ": "
            << result.at("before").at("median_ms").get<double>() << " -> "
            << result.at("after").at("median_ms").get<double>() << " ms" << extents_text(result.at("extents"))
            << " after " << result.at("trials") << " trials; package "
            << result.at("package").get<std::string>() << std::endl;
  return 0;
}

std::vector<tune::Task> selected_tasks(const std::string& selection, std::vector<tune::Task> tasks) {
  std::vector<tune::Task> selected;
  for (size_t place : tune::parse_selection(selection, tasks.size()))
    selected.push_back(std::move(tasks[place]));
  return selected;
}

int tune_model(TuneArguments& arguments, const GlobalOptions& globals) {
  if (!arguments.elsewhere.on.empty()) return tune_elsewhere(arguments, globals);
  const target::Target host = target::host_target();
  const target::Target target = resolve_target(arguments.target, {}, host);
  if (!server::host_runs(target, host))
    throw Error(ErrorCode::kNotSupported, "this machine cannot run code for " + target.canonical());
  if (arguments.tasks != "list") check_records_output(arguments.output);
  const std::optional<passes::DesiredLayout> layout = layout_of(arguments.layout);
  driver::GenericPlanner planner(target);
  const ir::Variants variants = variants_of(arguments, planner);
  const std::vector<std::vector<int64_t>> extents =
      tune::named_extents(variants, parse_shape_buckets(arguments.extents));
  std::vector<tune::Task> tasks =
      tune::package_tasks(variants, target, {kOptLevel, layout, extents, arguments.extents.empty()});
  tune::TuneOptions options = arguments.options;
  options.measure.threads = arguments.threads > 0
                                ? arguments.threads
                                : std::clamp(target.facts.num_cores, 1, std::max(1, host.facts.num_cores));
  options.measure.timeout_seconds = arguments.timeout;
  options.build_timeout_seconds = arguments.timeout;
  options.cpu = target::cpu_fingerprint(host);
  options.codegen = driver::code_generator();
  if (arguments.tasks == "list") return list_tasks(std::move(tasks), target, options, globals.json);
  std::vector<tune::Task> selected = selected_tasks(arguments.tasks, std::move(tasks));
  // Cut first: what a crash left of a line is no record.
  tune::RecordLog log(arguments.output);
  const std::vector<tune::Record> known = known_records(arguments);
  tune::TuneHooks hooks;
  hooks.clock = &now;
  hooks.record = [&](const tune::Record& record) { log.append(record); };
  const ProgressLine progress(options.time_budget_seconds);
  hooks.progress = [&](const tune::TuneSession& session) {
    if (!globals.json) {
      progress.print(session, false);
    } else if (globals.verbosity > 0) {
      print_progress_json(session);
    }
  };
  measure::WorkerMeasurer measurer;
  const std::unique_ptr<codegen::Backend> backend = codegen::make_llvm_backend();
  tune::TuneSession session(std::move(selected), target, options, *backend, measurer, hooks);
  const int64_t resumed = session.resume(known);
  if (resumed > 0 && !globals.json) std::cerr << "counting " << resumed << " trials from records\n";
  session.run();
  Json report = report_of(session);
  if (arguments.network_rounds > 0) {
    ModelNetwork network(variants, target, {kOptLevel, layout, extents}, options.measure.threads,
                         arguments.output);
    add_network(report,
                tune::settle_in_network(network, target, options.codegen, arguments.network_rounds, now));
    report["network"]["extents"] = tune::extents_json(extents, variants.free_dims);
  }
  if (globals.json) {
    print_json(report);
  } else {
    progress.print(session, true);
    print_report(report);
  }
  return 0;
}

}  // namespace

Action tune_command(CLI::App& app) {
  const auto arguments = std::make_shared<TuneArguments>();
  tune::TuneOptions& options = arguments->options;
  app.add_option("MODEL", arguments->model, "model file")->required();
  app.add_option("-o,--output", arguments->output,
                 "records file; one that exists is continued: its trials count");
  add_model_options(app, arguments->format, arguments->signature);
  app.add_option("--quantized", arguments->quantized,
                 "exact: integers of a TFLite file are rounded as its reference kernels do, bit for bit")
      ->check(CLI::IsMember({"exact"}));
  app.add_option("--target", arguments->target,
                 "target string, JSON, or a .json file; default: this machine");
  app.add_option("--input-shapes", arguments->input_shapes, "\"data:[1,3,224,224] x:[N,3,H,W]\"");
  app.add_option("--input-values", arguments->input_values,
                 "inputs that are fixed for good, as JSON: {\"sr\":16000}");
  app.add_option(
      "--extents", arguments->extents,
      "of free dims, at which kernels of all extents are measured, and the model: \"N=1,8;H=224\"");
  app.add_option("--trials", options.trials, "of the whole model")->check(CLI::PositiveNumber);
  app.add_option("--time-budget", options.time_budget_seconds, "seconds; 0: none")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--tuner", options.tuner, "xgb, xgb-rank, ga, gridsearch or random")
      ->check(CLI::IsMember(tune::tuner_names()));
  app.add_flag("--enable-autoscheduler", options.sketches,
               "search the automatic scheduler's sketches beside the templates");
  add_layout_options(app, arguments->layout);
  app.add_option("--tasks", arguments->tasks, "list, all, or places such as 0,2 or 3-5");
  app.add_option("--prior-records", arguments->prior_records, "records whose trials count");
  app.add_option("--early-stopping", options.early_stopping,
                 "trials of a task without a better one; 0: never")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--timeout", arguments->timeout, "seconds for building, and for running, one candidate")
      ->check(CLI::PositiveNumber);
  app.add_option("--number", options.measure.number, "runs in each measurement, at least")
      ->check(CLI::PositiveNumber);
  app.add_option("--repeat", options.measure.repeat, "measurements of a candidate")
      ->check(CLI::PositiveNumber);
  app.add_option("--min-repeat-ms", options.measure.min_repeat_ms, "shortest measurement")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--flush-cache", options.measure.flush_cache, "measure with cold caches");
  app.add_option("--threads", arguments->threads,
                 "threads that candidates run on; default: the target's cores")
      ->check(CLI::PositiveNumber);
  app.add_option("--network-rounds", arguments->network_rounds,
                 "of running the model with what was found and without, at the end; 0: none")
      ->check(CLI::Range(0, 1000));
  app.add_option("--seed", options.seed, "of the search")->check(seed_number());
  add_run_on_options(app, arguments->elsewhere,
                     "measure on workers with these labels, of --server, which searches and builds");
  return [arguments](const GlobalOptions& globals) { return tune_model(*arguments, globals); };
}

}  // namespace tensormill::cli
