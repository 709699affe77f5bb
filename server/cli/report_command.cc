#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <system_error>

#include "api/http/time.h"
#include "compiler/driver/compile.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/own_json.h"
#include "runtime/package/package_reader.h"
#include "server/cli/cli.h"
#include "server/cli/layout_options.h"
#include "server/cli/model_input.h"
#include "server/cli/open_package.h"
#include "server/cli/terminal.h"
#include "server/report/confusion.h"
#include "server/report/html.h"
#include "server/report/program_run.h"
#include "server/report/rows.h"
#include "server/report/times.h"

namespace tensormill::cli {

namespace {

struct ReportArguments {
  std::vector<std::string> models;
  std::string inputs;
  std::string labels;
  std::string classes;
  std::string scores;
  std::vector<std::string> targets;
  std::string opt_levels = "3";
  std::string layouts;
  std::string input_shapes;
  std::string tuning_records;
  std::string packages;
  std::string output;
  int64_t samples = 0;
  int threads = 0;
  report::TimesOptions times{1, 20, 1};
};

struct Configuration {
  std::string model;
  std::string target;
  int opt_level = 3;
  std::string layout;  ///< "": the compiler chooses
  std::string name() const;
};

std::string Configuration::name() const {
  return report::configuration_name(std::filesystem::path(model).stem().string(), target, opt_level, layout);
}

[[noreturn]] void bad_levels(const std::string& text) {
  throw Error(ErrorCode::kUsage,
              "--opt-levels \"" + text + "\": write levels from 0 to 4: \"0-4\", \"0,2,3\"");
}

int opt_level_of(std::string_view word, const std::string& text) {
  int level = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), level);
  if (error != std::errc() || end != word.data() + word.size() || level < 0 || level > 4) bad_levels(text);
  return level;
}

/// "0-4", "1,3" -> levels, in the order that is given.
std::vector<int> parse_opt_levels(const std::string& text) {
  std::vector<int> levels;
  for (const std::string& part : split_list(text)) {
    const size_t dash = part.find('-', 1);
    const int first = opt_level_of(std::string_view(part).substr(0, dash), text);
    const int last =
        dash == std::string::npos ? first : opt_level_of(std::string_view(part).substr(dash + 1), text);
    if (last < first) bad_levels(text);
    for (int level = first; level <= last; ++level) levels.push_back(level);
  }
  if (levels.empty()) bad_levels(text);
  return levels;
}

std::vector<Configuration> configurations_of(const ReportArguments& arguments) {
  std::vector<std::string> targets = arguments.targets;
  if (targets.empty()) targets.emplace_back("llvm -mcpu=native");
  std::vector<std::string> layouts = split_list(arguments.layouts);
  for (const std::string& layout : layouts) layout_of(LayoutArguments{layout, ""});
  if (layouts.empty()) layouts.emplace_back();
  std::vector<Configuration> list;
  for (const std::string& model : arguments.models)
    for (const std::string& target : targets)
      for (const int level : parse_opt_levels(arguments.opt_levels))
        for (const std::string& layout : layouts) list.push_back({model, target, level, layout});
  return list;
}

/// A folder of the own for packages, gone at the end.
class WorkFolder {
public:
  explicit WorkFolder(const std::string& kept) : path_(kept), is_kept_(!kept.empty()) {
    if (is_kept_) {
      std::error_code error;
      std::filesystem::create_directories(path_, error);
      if (!std::filesystem::is_directory(path_, error))
        throw Error(ErrorCode::kUsage, "--packages " + path_ + " cannot be made");
      return;
    }
    std::string form = (std::filesystem::temp_directory_path() / "tensormill-report-XXXXXX").string();
    if (::mkdtemp(form.data()) == nullptr) throw_errno(errno, "cannot make a folder for packages");
    path_ = form;
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (!is_kept_) std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::string& path() const { return path_; }

private:
  std::string path_;
  bool is_kept_;
};

/// Null where it is no JSON: a program that was ended may have printed a part.
Json printed_by(const report::ProgramRun& run) {
  try {
    return parse_json(run.out);
  } catch (const Error&) {
    return {};
  }
}

/// What a run that failed says: its own error, or how it ended.
Json failure(const char* step, const report::ProgramRun& run) {
  std::string message = "ended with " + std::to_string(run.exit_code);
  std::string code = "job_failed";
  const Json said = printed_by(run);
  if (said.is_object() && said.contains("error")) {
    message = said["error"]["detail"].get<std::string>();
    code = said["error"]["code"].get<std::string>();
  }
  const int internal = error_code_info(ErrorCode::kInternal).exit_code;
  return {{"step", step},
          {"code", code},
          {"message", message},
          {"exit_code", run.exit_code < 128 ? run.exit_code : internal}};
}

void add(std::vector<std::string>& words, const char* option, const std::string& value) {
  if (!value.empty()) words.insert(words.end(), {option, value});
}

report::ProgramRun compile_apart(const ReportArguments& arguments, const Configuration& configuration,
                                 const std::string& package) {
  std::vector<std::string> words = {"compile",
                                    configuration.model,
                                    "--json",
                                    "-o",
                                    package,
                                    "--target",
                                    configuration.target,
                                    "-O",
                                    std::to_string(configuration.opt_level)};
  add(words, "--desired-layout", configuration.layout);
  add(words, "--input-shapes", arguments.input_shapes);
  add(words, "--tuning-records", arguments.tuning_records);
  return report::run_program(report::kOwnProgram, words);
}

report::ProgramRun evaluate_apart(const ReportArguments& arguments, const std::string& package) {
  std::vector<std::string> words = {"evaluate",
                                    package,
                                    "--json",
                                    "--inputs",
                                    arguments.inputs,
                                    "--samples",
                                    std::to_string(arguments.samples),
                                    "--threads",
                                    std::to_string(arguments.threads),
                                    "--warmup",
                                    std::to_string(arguments.times.warmup),
                                    "--repeat",
                                    std::to_string(arguments.times.repeat),
                                    "--number",
                                    std::to_string(arguments.times.number)};
  add(words, "--scores", arguments.scores);
  return report::run_program(report::kOwnProgram, words);
}

/// Compiles and tries one configuration; what goes wrong is in its row.
Json try_configuration(const ReportArguments& arguments, const Configuration& configuration,
                       const report::Truth& truth, const target::Target& host, const std::string& file) {
  Json row = report::empty_row(configuration.name(), configuration.model, configuration.target,
                               configuration.opt_level, configuration.layout);
  const report::ProgramRun compiled = compile_apart(arguments, configuration, file);
  row["compile"] = {{"wall_s", compiled.wall_s},
                    {"cpu_s", compiled.cpu_s},
                    {"max_resident_bytes", compiled.max_resident_bytes}};
  if (compiled.exit_code != 0) {
    row["error"] = failure("compile", compiled);
    return row;
  }
  const Json said = parse_json(compiled.out);
  row["compile"]["times_ms"] = said["times_ms"];
  row["target"] = said["target"];
  const std::shared_ptr<const package::Package> package = package::Package::open(file);
  row["package"] = report::package_json(package->metadata(), package->id(), package->metadata_text().size());
  const report::ProgramRun run = evaluate_apart(arguments, file);
  Json evaluation;
  if (run.exit_code == 0) {
    evaluation = parse_json(run.out);
    row["run"] = report::run_json(evaluation, run.max_resident_bytes);
    row["quality"] = report::quality_json(evaluation, truth);
    row["state"] = "ok";
  } else {
    row["error"] = failure("run", run);
  }
  std::vector<std::string> lines =
      report::row_remarks({package->metadata(), compiled.err, resolve_target(configuration.target, {}, host),
                           host, !truth.classes.empty()},
                          evaluation, row["quality"]);
  if (const auto refused = said.value("generic_plan_refused", ""); !refused.empty())
    lines.push_back("no kernels for shapes other than those compiled for: " + refused);
  row["remarks"] = lines;
  return row;
}

/// A line for people, while and after the rows are made.
void print_row(const Json& row) {
  std::cout << std::left << std::setw(36) << printable(row["name"].get<std::string>()) << std::right
            << std::fixed;
  if (row["state"] != "ok") {
    std::cout << "  " << coloured("failed", Colour::kRed, Stream::kOut) << "  "
              << printable(row["error"]["message"].get<std::string>()) << std::endl;
    return;
  }
  std::cout << std::setw(12) << std::setprecision(4) << row["run"]["times"]["median_ms"].get<double>()
            << " ms" << std::setw(12) << std::setprecision(1) << row["run"]["samples_per_s"].get<double>()
            << " samples/s";
  if (row["quality"].is_object()) {
    std::cout << std::setw(9) << std::setprecision(2) << 100 * row["quality"]["accuracy"].get<double>()
              << " % right";
  }
  std::cout << std::endl;
}

/// Names come from files and models: what is no UTF-8 becomes U+FFFD.
std::string document_text(const Json& report, int indent) {
  return report.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void write_report(const std::string& path, const Json& report) {
  const bool is_html = path.ends_with(".html") || path.ends_with(".htm");
  write_file(path, is_html ? report::to_html(parse_own_json(document_text(report, -1)))
                           : document_text(report, 2) + "\n");
}

int make_report(const ReportArguments& arguments, const GlobalOptions& globals) {
  const std::vector<Configuration> configurations = configurations_of(arguments);
  if (!arguments.output.empty()) check_output("-o", arguments.output);
  const target::Target host = target::host_target();
  for (const Configuration& one : configurations) resolve_target(one.target, {}, host);
  report::Truth truth;
  truth.names = read_labels(arguments.classes);
  if (!arguments.labels.empty()) truth.classes = report::read_truth(arguments.labels, truth.names);
  MappedFile::open(arguments.inputs);
  const WorkFolder folder(arguments.packages);
  Json rows = Json::array();
  int exit_code = 0;
  bool has_good = false;
  {
    ProgressLine progress;
    for (size_t i = 0; i < configurations.size(); ++i) {
      progress.show(printable(configurations[i].name()), static_cast<int64_t>(i),
                    static_cast<int64_t>(configurations.size()));
      const std::string file = folder.path() + "/" + std::to_string(i) + ".tar";
      rows.push_back(try_configuration(arguments, configurations[i], truth, host, file));
      progress.clear();
      if (!globals.json) print_row(rows.back());
      const bool is_good = rows.back()["state"] == "ok";
      if (!is_good && exit_code == 0) exit_code = rows.back()["error"]["exit_code"].get<int>();
      has_good = has_good || is_good;
    }
  }
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const Json report = report::report_json({http::format_timestamp(now.count()), driver::compiler_build(),
                                           report::machine_json(host), arguments.inputs},
                                          rows);
  if (!arguments.output.empty()) write_report(arguments.output, report);
  if (globals.json) std::cout << document_text(report, -1) << std::endl;
  return has_good ? 0 : exit_code;
}

}  // namespace

Action report_command(CLI::App& app) {
  const auto arguments = std::make_shared<ReportArguments>();
  app.add_option("MODEL", arguments->models, "model files")->required()->expected(1, 1000);
  app.add_option("--inputs", arguments->inputs, "NPZ with the examples of each input, one behind the other")
      ->required();
  app.add_option("--labels", arguments->labels,
                 "the class of each example: .npy, .npz with one array, or a text with one a line");
  app.add_option("--classes", arguments->classes, "text file with the names of the classes, one a line");
  app.add_option("--scores", arguments->scores, "output with the scores; default: the first");
  app.add_option("--targets", arguments->targets, "target strings, between semicolons; default: this machine")
      ->delimiter(';')
      ->allow_extra_args(false);
  app.add_option("--opt-levels", arguments->opt_levels, "\"0-4\", \"0,2,3\"; default 3");
  app.add_option("--layouts", arguments->layouts,
                 "layouts that maps are computed in: NCHW,NHWC; default: the compiler chooses");
  app.add_option("--input-shapes", arguments->input_shapes, "as compile");
  app.add_option("--tuning-records", arguments->tuning_records, "as compile");
  app.add_option("--samples", arguments->samples, "the most to look at; default: all of the set")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app.add_option("--repeat", arguments->times.repeat, "measurements, as run; default 20")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--number", arguments->times.number, "runs in each, as run")->check(CLI::Range(1, 1000000));
  app.add_option("--warmup", arguments->times.warmup, "runs before, as run")->check(CLI::Range(0, 1000000));
  app.add_option("--threads", arguments->threads, "of a run; default: all cores")->check(CLI::Range(0, 1024));
  app.add_option("--packages", arguments->packages, "folder to keep the packages in: 0.tar, 1.tar, ...");
  app.add_option("-o,--output", arguments->output, "NAME.html: one page; any other name: JSON");
  return [arguments](const GlobalOptions& globals) { return make_report(*arguments, globals); };
}

}  // namespace tensormill::cli
