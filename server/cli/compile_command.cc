#include <algorithm>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <thread>

#include "compiler/bundle/bundle.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/generic_planner.h"
#include "compiler/ops/ops.h"
#include "compiler/package/writer.h"
#include "compiler/passes/pass.h"
#include "compiler/tune/choose.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/layout_options.h"
#include "server/cli/model_input.h"
#include "server/cli/terminal.h"
#include "server/services/deployments/host_runs.h"

namespace tensormill::cli {

namespace {

constexpr std::string_view kInterfaceHeader = "tensormill.h";

struct CompileArguments {
  std::string model;
  std::string format;
  std::string signature;
  std::string quantized;
  std::string target;
  std::string mcpu, mattr, mtriple;
  int num_cores = 0;
  int opt_level = 3;
  std::string input_shapes;
  std::string shape_buckets;
  std::string input_values;
  std::string outputs;
  LayoutArguments layout;
  std::string mixed_precision;
  std::string tuning_records;
  std::vector<std::string> pass_config;
  std::string disabled_pass;
  std::string verify = "sample";
  std::string dump_code;
  bool print_pass_times = false;
  std::string output_format = "tar";
  std::string output;
  int threads = 0;
};

/// Options of the contract that arrive with later work are named, never ignored.
void refuse_unsupported(const CompileArguments& arguments) {
  const auto refuse = [](const std::string& value, const char* option) {
    if (!value.empty())
      throw Error(ErrorCode::kNotSupported, std::string(option) + " is not implemented yet");
  };
  refuse(arguments.mixed_precision, "--mixed-precision");
  if (!arguments.pass_config.empty()) {
    throw Error(ErrorCode::kUsage,
                "--pass-config " + arguments.pass_config.front() + ": no pass has options");
  }
}

/// Without --target this machine's CPU is meant, where no --target-llvm-mcpu names another.
std::string target_text(const CompileArguments& arguments) {
  if (!arguments.target.empty()) return arguments.target;
  return arguments.mcpu.empty() && arguments.mtriple.empty() ? "llvm -mcpu=native" : "llvm";
}

std::vector<std::string> target_overrides(const CompileArguments& arguments) {
  std::vector<std::string> overrides;
  if (!arguments.mcpu.empty()) overrides.push_back("-mcpu=" + arguments.mcpu);
  if (!arguments.mattr.empty()) overrides.push_back("-mattr=" + arguments.mattr);
  if (!arguments.mtriple.empty()) overrides.push_back("-mtriple=" + arguments.mtriple);
  if (arguments.num_cores > 0) overrides.push_back("-num-cores=" + std::to_string(arguments.num_cores));
  return overrides;
}

std::set<std::string> dump_stages(const std::string& text) {
  std::set<std::string> stages;
  for (const std::string& stage : split_list(text)) {
    if (stage != "relay" && stage != "te" && stage != "tir" && stage != "ll" && stage != "asm") {
      throw Error(ErrorCode::kUsage, "--dump-code " + stage + ": expected relay, te, tir, ll or asm");
    }
    stages.insert(stage);
  }
  return stages;
}

std::set<std::string> disabled_passes(const std::string& text) {
  std::set<std::string> disabled;
  const std::vector<passes::PassInfo>& rows = passes::all_passes();
  for (const std::string& name : split_list(text)) {
    if (std::none_of(rows.begin(), rows.end(), [&](const passes::PassInfo& row) { return row.name == name; }))
      throw Error(ErrorCode::kUsage, "--disabled-pass " + name + ": there is no pass \"" + name + "\"");
    disabled.insert(name);
  }
  return disabled;
}

/// What is not computed in the layout that was asked for.
void tell_stayed(const driver::CompileOptions& options, const driver::CompileResult& result) {
  for (const passes::StayedNode& node : result.layout.stayed)
    std::cerr << "note: " << printable(passes::line_of(node, options.layout->name())) << "\n";
}

void print_report(const CompileArguments& arguments, const driver::CompileOptions& options,
                  const driver::CompileResult& result, int64_t imports, bool json) {
  const package::Metadata metadata = package::metadata_from_json(result.metadata_json);
  if (json) {
    const auto as_json = [](const std::vector<driver::PhaseTime>& rows) {
      Json times = Json::object();
      for (const driver::PhaseTime& row : rows) times[row.phase] = row.ms;
      return times;
    };
    Json report{{"package", package::package_id(result.metadata_json).text()},
                {"output", arguments.output},
                {"target", metadata.target},
                {"steps", metadata.num_steps},
                {"host_steps", metadata.host_steps},
                {"kernels", metadata.kernels.size()},
                {"imports", imports},
                {"times_ms", as_json(result.times)},
                {"pass_times_ms", as_json(result.pass_times)},
                {"generic_plan_refused", result.generic_refused}};
    if (options.layout) report["layout"] = layout_json(*options.layout, result.layout);
    print_json(report);
    return;
  }
  std::cout << arguments.output << ": " << metadata.num_steps << " steps, " << metadata.kernels.size()
            << " kernels, " << package::package_id(result.metadata_json).text() << "\n";
  if (!arguments.print_pass_times) return;
  std::cout << std::setw(12) << imports << " imports of the model\n";
  const auto print_row = [](const driver::PhaseTime& row, const char* indent) {
    std::cout << std::setw(12) << std::fixed << std::setprecision(1) << row.ms << " ms  " << indent
              << row.phase << "\n";
  };
  for (const driver::PhaseTime& phase : result.times) {
    print_row(phase, "");
    if (phase.phase != "passes") continue;
    for (const driver::PhaseTime& pass : result.pass_times) print_row(pass, "  ");
  }
}

/// How many records there are.
size_t use_records(const std::string& path, driver::CompileOptions& options) {
  const std::vector<tune::Record> records = read_record_file(path);
  options.schedules = tune::choose_schedules(records, options.target, driver::code_generator());
  options.algorithms = tune::choose_algorithms(records, options.target, driver::code_generator());
  options.schedules_reason = "no record of the kernel";
  return records.size();
}

/// Warns of records whose steps made no kernel; throws where damage leaves the file without others. Steps
/// that do not apply are of another version of the kernel, which the default serves.
void tell_refused(const CompileArguments& arguments, const driver::CompileResult& result, size_t records) {
  bool is_damaged = false;
  for (const driver::RefusedRecord& refused : result.refused_records) {
    std::cerr << "warning: " << arguments.tuning_records << ": " << refused.what
              << "; the record is left out\n";
    is_damaged = is_damaged || refused.is_damaged;
  }
  if (is_damaged && result.refused_records.size() == records)
    throw Error(ErrorCode::kInvalidRecords,
                arguments.tuning_records + ": no record is left: " + result.refused_records.front().what);
}

/// Found before the work, not after it.
void check_outputs(const CompileArguments& arguments, const std::set<std::string>& stages) {
  check_output("-o", arguments.output);
  if (arguments.output_format != "tar" &&
      std::filesystem::path(arguments.output).replace_extension(".h").filename() == kInterfaceHeader)
    throw Error(ErrorCode::kUsage, "-o " + arguments.output +
                                       ": its header would have the name of tensormill.h, which it includes");
  for (const std::string& stage : stages) check_output("--dump-code", arguments.output + "." + stage);
}

std::string default_output(const std::string& output_format) {
  return "module." + (output_format == "static" ? "a" : output_format);
}

bundle::Form form_of(const CompileArguments& arguments) {
  return arguments.output_format == "so" ? bundle::Form::kShared : bundle::Form::kStatic;
}

/// The package as `compile -f so` or `-f static` gives it: the library, NAME.h and tensormill.h beside it.
void write_bundle(const CompileArguments& arguments, const target::Target& target,
                  const package::ArchiveMembers& members) {
  const std::filesystem::path output(arguments.output);
  const std::string header = output.stem().string() + ".h";
  const bundle::Form form = form_of(arguments);
  const bundle::Runtime runtime(target, form);
  const std::string archive = package::archive_bytes(members);
  const bundle::Bundle made = bundle::make_bundle(form, {runtime.bytes(), std::as_bytes(std::span(archive)),
                                                         package::metadata_from_json(members.metadata_json),
                                                         target, arguments.output, bundle::c_libraries()});
  write_file(arguments.output, made.library);
  write_file(output.parent_path() / header, made.header);
  write_file(output.parent_path() / kInterfaceHeader, std::string(bundle::interface_header()));
}

void write_output(const CompileArguments& arguments, const target::Target& target,
                  const package::ArchiveMembers& members) {
  if (arguments.output_format == "tar")
    package::write_archive(arguments.output, members);
  else
    write_bundle(arguments, target, members);
}

/// What to make for which target; what the package records of the choices beside the target.
driver::CompileOptions compile_options(const CompileArguments& arguments) {
  const target::Target host = target::host_target();
  driver::CompileOptions options;
  options.dumps = dump_stages(arguments.dump_code);
  check_outputs(arguments, options.dumps);
  options.target = resolve_target(target_text(arguments), target_overrides(arguments), host);
  // Found before the work, not after it.
  if (arguments.output_format != "tar") bundle::Runtime(options.target, form_of(arguments));
  for (const std::string& warning : options.target.warnings) std::cerr << "warning: " << warning << "\n";
  options.opt_level = arguments.opt_level;
  options.disabled_passes = disabled_passes(arguments.disabled_pass);
  options.layout = layout_of(arguments.layout);
  if (options.layout) options.recorded_options["desired_layout"] = arguments.layout.layout;
  if (!arguments.layout.ops.empty()) options.recorded_options["desired_layout_ops"] = arguments.layout.ops;
  options.verify = driver::parse_verify_mode(arguments.verify);
  options.host_runs_target = server::host_runs(options.target, host);
  options.threads = arguments.threads > 0 ? arguments.threads : std::max(1, host.facts.num_cores);
  return options;
}

/// How the model is imported; `recorded`: what the package records of it.
frontend::ImportOptions import_options(const CompileArguments& arguments, const frontend::Importer& model,
                                       std::map<std::string, std::string>& recorded) {
  frontend::ImportOptions import;
  import.input_shapes = parse_input_shapes(arguments.input_shapes);
  bind_input_values(arguments.input_values, model, import);
  if (!arguments.input_values.empty()) recorded["input_values"] = parse_json(arguments.input_values).dump();
  import.outputs = split_list(arguments.outputs);
  for (const auto& [name, shape] : import.input_shapes) recorded["input_shapes." + name] = to_string(shape);
  if (!arguments.outputs.empty()) recorded["outputs"] = arguments.outputs;
  if (!arguments.signature.empty()) recorded["signature"] = arguments.signature;
  frontend::set_quantized(model, arguments.quantized, import);
  if (!arguments.quantized.empty()) recorded["quantized"] = arguments.quantized;
  return import;
}

/// Progress as a line that is written over, or, where more is asked for, as one line each.
std::function<void(const driver::Progress&)> progress_of(const GlobalOptions& globals, ProgressLine& line) {
  if (globals.verbosity == 0)
    return [&line](const driver::Progress& progress) {
      line.show(progress.stage, progress.done, progress.total);
    };
  return [](const driver::Progress& progress) {
    std::cerr << progress.stage << " " << progress.done << "/" << progress.total << "\n";
  };
}

int compile_model(const CompileArguments& arguments, const GlobalOptions& globals) {
  refuse_unsupported(arguments);
  driver::CompileOptions options = compile_options(arguments);
  const size_t records =
      arguments.tuning_records.empty() ? 0 : use_records(arguments.tuning_records, options);
  const std::unique_ptr<frontend::Importer> model =
      open_model_file(arguments.model, arguments.format, arguments.signature);
  options.model_digest = model->digest().text();
  options.model_format = model->format();
  const frontend::ImportOptions import = import_options(arguments, *model, options.recorded_options);
  driver::CompileHooks hooks;
  ProgressLine line;
  hooks.progress = progress_of(globals, line);
  const ShapeBuckets buckets = parse_shape_buckets(arguments.shape_buckets);
  for (const auto& [name, extents] : buckets)
    options.recorded_options["shape_buckets." + name] = to_string(Shape(extents));
  driver::GenericPlanner planner(options.target);
  hooks.planner = &planner;
  const ir::Variants variants =
      model->import_for_package(import, buckets, ops::standard_ops(),
                                [&planner](const ir::SymbolicModel& symbolic, std::string* reason) {
                                  return planner.takes(symbolic, reason);
                                });
  const driver::CompileResult result = driver::compile(variants, options, hooks);
  line.clear();
  tell_refused(arguments, result, records);
  tell_stayed(options, result);
  for (const auto& [stage, text] : result.dumps) write_file(arguments.output + "." + stage, text);
  write_output(arguments, options.target,
               {result.metadata_json, result.plan_json, result.code, &result.params, result.params_bytes});
  if (!result.shape_warning.empty()) std::cerr << "warning: " << result.shape_warning << "\n";
  print_report(arguments, options, result, variants.imports, globals.json);
  return 0;
}

}  // namespace

Action compile_command(CLI::App& app) {
  const auto arguments = std::make_shared<CompileArguments>();
  app.add_option("MODEL", arguments->model, "model file")->required();
  add_model_options(app, arguments->format, arguments->signature);
  app.add_option("--quantized", arguments->quantized,
                 "exact: integers of a TFLite file are rounded as its reference kernels do, bit for bit")
      ->check(CLI::IsMember({"exact"}));
  app.add_option("--target", arguments->target,
                 "target string, JSON, or a .json file; default: this machine");
  app.add_option("--target-llvm-mcpu", arguments->mcpu, "as -mcpu in the target string");
  app.add_option("--target-llvm-mattr", arguments->mattr, "as -mattr in the target string");
  app.add_option("--target-llvm-mtriple", arguments->mtriple, "as -mtriple in the target string");
  app.add_option("--target-llvm-num-cores", arguments->num_cores, "as -num-cores in the target string")
      ->check(CLI::Range(1, 4096));
  app.add_option("-O,--opt-level", arguments->opt_level, "0 to 4")->check(CLI::Range(0, 4));
  app.add_option(
      "--input-shapes", arguments->input_shapes,
      "\"data:[1,3,224,224] x:[N,3,H,W]\"; strings may have one extent more, their bytes; dims that "
      "nothing binds stay free under the model's own names");
  app.add_option("--shape-buckets", arguments->shape_buckets, "\"N=1,8;H=32..640:32\"");
  app.add_option("--input-values", arguments->input_values,
                 "inputs that are fixed for good, as JSON: {\"sr\":16000}");
  app.add_option("--outputs", arguments->outputs, "values to return instead of the model's outputs: A,B");
  add_layout_options(app, arguments->layout);
  app.add_option("--mixed-precision", arguments->mixed_precision, "bf16 or int8");
  app.add_option("--tuning-records", arguments->tuning_records, "records file");
  app.add_option("--pass-config", arguments->pass_config, "K=V");
  app.add_option("--disabled-pass", arguments->disabled_pass, "names: A,B");
  app.add_option("--verify", arguments->verify, "full, sample or none")
      ->check(CLI::IsMember({"full", "sample", "none"}));
  app.add_option("--dump-code", arguments->dump_code, "relay,te,tir,ll,asm: written beside the package");
  app.add_flag("--print-pass-times", arguments->print_pass_times,
               "print the time of each phase and graph pass");
  app.add_option("--threads", arguments->threads, "compiler threads; default: all cores")
      ->check(CLI::Range(0, 1024));
  app.add_option("-f,--output-format", arguments->output_format,
                 "tar: a package; so, static: a library that holds the package and its executor, and headers "
                 "beside it")
      ->check(CLI::IsMember({"tar", "so", "static"}));
  app.add_option("-o,--output", arguments->output,
                 "file to write; default: module.tar, module.so or module.a");
  return [arguments](const GlobalOptions& globals) {
    if (arguments->output.empty()) arguments->output = default_output(arguments->output_format);
    return compile_model(*arguments, globals);
  };
}

}  // namespace tensormill::cli
