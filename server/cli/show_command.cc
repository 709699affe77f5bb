#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <system_error>

#include "compiler/driver/generic_planner.h"
#include "compiler/frontend/formats/detect.h"
#include "compiler/ops/ops.h"
#include "compiler/target/target.h"
#include "compiler/tune/space.h"
#include "compiler/tune/task.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/package/package_reader.h"
#include "server/cli/cli.h"
#include "server/cli/model_input.h"
#include "server/cli/terminal.h"

namespace tensormill::cli {

namespace {

struct ShowArguments {
  std::string path;
  std::string format;
  std::string signature;
  std::string input_shapes;
  std::string input_values;
  bool graph = false;
  bool ops = false;
  bool tasks = false;
};

/// Unnamed free dims are -1, as in the models' own tools.
Json shape_json(const DimShape& shape) {
  Json list = dims_to_json(shape);
  for (Json& dim : list)
    if (dim == "") dim = -1;
  return list;
}

template <typename Value>
Json signature_json(const std::vector<Value>& values) {
  Json list = Json::array();
  for (const Value& value : values) {
    list.push_back(
        {{"name", value.name}, {"dtype", dtype_long_name(value.dtype)}, {"shape", shape_json(value.shape)}});
  }
  return list;
}

void print_numbers(const std::vector<double>& numbers) {
  for (const double number : numbers) std::cout << " " << number;
}

void print_notes(const ValueNotes& notes) {
  if (!notes.mean.empty()) {
    std::cout << " (mean";
    print_numbers(notes.mean);
    std::cout << ", std";
    print_numbers(notes.std);
    std::cout << ")";
  }
  if (!notes.labels.empty()) std::cout << " (" << notes.labels.size() << " labels)";
}

template <typename Value>
void print_signature(const char* title, const std::vector<Value>& values) {
  for (const Value& value : values) {
    std::cout << title << " " << value.name << ": " << dtype_long_name(value.dtype) << to_string(value.shape);
    if (value.quantization)
      std::cout << " (scale " << value.quantization->scale << ", zero point "
                << value.quantization->zero_point << ")";
    if constexpr (std::is_same_v<Value, package::TensorInfo>) print_notes(value.notes);
    std::cout << "\n";
  }
}

/// A function's name without its key: "conv_relu" of "conv_relu_4acc5084a8e0".
std::string without_key(const std::string& function) { return function.substr(0, function.rfind('_')); }

int show_package(const ShowArguments& arguments, bool json) {
  const std::shared_ptr<const package::Package> opened =
      in_context(arguments.path, [&] { return package::Package::open(arguments.path); });
  const package::Metadata& metadata = opened->metadata();
  if (json) {
    Json report = parse_json(opened->metadata_text());
    report["id"] = opened->id().text();
    print_json(report);
    return 0;
  }
  if (arguments.graph) {
    for (const package::Step& step : opened->plan().steps)
      std::cout << step.name << ": " << step.function << "\n";
    return 0;
  }
  if (arguments.ops || arguments.tasks) {
    std::map<std::string, int64_t> counts;
    for (const package::Step& step : opened->plan().steps)
      ++counts[arguments.tasks ? step.function : without_key(step.function)];
    for (const auto& [name, count] : counts) std::cout << name << " " << count << "\n";
    return 0;
  }
  std::cout << "package " << opened->id().text() << "\nmodel " << metadata.model_digest << "\ntarget "
            << metadata.target << "\nopt level " << metadata.opt_level << ", verify " << metadata.verify
            << "\n";
  print_signature("input", metadata.inputs);
  print_signature("output", metadata.outputs);
  std::cout << "steps " << metadata.num_steps << ", host steps " << metadata.host_steps << ", kernels "
            << metadata.kernels.size() << "\nweights " << metadata.weight_bytes << " bytes, flops "
            << metadata.flops << "\n";
  if (opened->plans().model) std::cout << "holds the model: shapes without kernels are interpreted\n";
  return 0;
}

/// The kernels that a compile for this machine makes, each with how often the model calls it, and what a
/// search may choose of it.
int show_tasks(const frontend::Importer& model, const frontend::ImportOptions& options, bool json) {
  const target::Target target = target::host_target();
  driver::GenericPlanner planner(target);
  const ir::Variants variants = model.import_for_package(
      options, {}, ops::standard_ops(), [&planner](const ir::SymbolicModel& symbolic, std::string* reason) {
        return planner.takes(symbolic, reason);
      });
  tune::SymbolicOptions kinds;
  kinds.algorithms = false;
  Json list = Json::array();
  for (const tune::Task& task : tune::package_tasks(variants, target, kinds)) {
    Json knobs = Json::array();
    const tune::Space space(task, target);
    for (const schedule::Knob& knob : space.analytic().knobs)
      knobs.push_back({{"name", knob.name}, {"default", knob.analytic}, {"candidates", knob.candidates}});
    list.push_back({{"name", task.name},
                    {"calls", task.calls},
                    {"args", task.symbolic ? task.free_args : task.args},
                    {"key", task.key()},
                    {"knobs", std::move(knobs)}});
  }
  if (json) {
    print_json(list);
    return 0;
  }
  for (const Json& row : list) {
    std::cout << row["name"].get<std::string>() << " " << row["calls"].get<int64_t>() << " "
              << row["args"].get<std::string>();
    for (const Json& knob : row["knobs"])
      std::cout << " " << knob["name"].get<std::string>() << "=" << knob["default"].get<int64_t>();
    std::cout << "\n";
  }
  return 0;
}

/// What a file holds of whose format there is a reader: operators with --ops, all facts else. Nothing where
/// there is none, and for ONNX models.
std::optional<frontend::FileFacts> foreign_facts(const ShowArguments& arguments) {
  if (arguments.graph || arguments.tasks) return std::nullopt;
  const frontend::FileFormat format = frontend::detect_path(arguments.path);
  return frontend::read_path_facts(arguments.path, format);
}

Json model_json(const frontend::Importer& model) {
  const frontend::ModelFacts& facts = model.facts();
  return {{"id", model.digest().text()},
          {"format", model.format()},
          {"inputs", signature_json(facts.inputs)},
          {"outputs", signature_json(facts.outputs)},
          {"ops", facts.ops},
          {"opsets", facts.opsets},
          {"parameters", facts.parameters}};
}

/// `model`: null where the format cannot be imported.
int show_foreign(const frontend::FileFacts& facts, const frontend::Importer* model,
                 const ShowArguments& arguments, bool json) {
  if (json) {
    Json report = frontend::to_json(facts);
    // What every model that can be imported has, in the same form.
    if (model != nullptr) report.update(model_json(*model));
    print_json(report);
  } else if (arguments.ops) {
    for (const auto& [op, count] : facts.ops) std::cout << op << " " << count << "\n";
  } else {
    std::cout << frontend::to_text(facts);
    for (const auto& [op, count] : facts.ops) std::cout << "operator " << op << ": " << count << "\n";
    if (model == nullptr) return 0;
    std::cout << "model " << model->digest().text() << "\n";
    for (const ErrorDetail& detail : model->unsupported())
      std::cout << "not supported: " << detail.detail << ", first \"" << detail.pointer << "\"\n";
  }
  return 0;
}

/// Where no number says an extent that a run works out, a symbol does.
ir::Graph graph_of(const frontend::Importer& model, frontend::ImportOptions options) {
  try {
    return model.import(options, ops::standard_ops());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kShapeRequired) throw;
    options.form.has_symbols = true;
    return model.import(options, ops::standard_ops());
  }
}

int show_model(const ShowArguments& arguments, bool json) {
  const auto foreign = in_context(arguments.path, [&] { return foreign_facts(arguments); });
  const bool is_importable =
      !foreign || frontend::format_row(frontend::detect_path(arguments.path)).is_importable;
  const std::unique_ptr<frontend::Importer> model =
      is_importable ? open_model_file(arguments.path, arguments.format, arguments.signature) : nullptr;
  if (foreign) return show_foreign(*foreign, model.get(), arguments, json);
  const frontend::ModelFacts& facts = model->facts();
  if (arguments.graph || arguments.tasks) {
    frontend::ImportOptions options;
    options.input_shapes = parse_input_shapes(arguments.input_shapes);
    bind_input_values(arguments.input_values, *model, options);
    if (arguments.tasks) return show_tasks(*model, options, json);
    const ir::Graph graph = graph_of(*model, frontend::with_symbols(facts, std::move(options)));
    std::cout << ir::print(graph);
    if (graph.symbols() != nullptr && graph.symbols()->has_strayed())
      std::cout
          << "# nodes demand other extents than those at which nodes before them were looked at: some guards "
             "hold at no extents that all take\n";
    return 0;
  }
  if (json) {
    print_json(model_json(*model));
    return 0;
  }
  if (arguments.ops) {
    for (const auto& [op, count] : facts.ops) std::cout << op << " " << count << "\n";
    return 0;
  }
  std::cout << "model " << model->digest().text() << "\nproducer " << facts.producer << "\n";
  print_signature("input", facts.inputs);
  print_signature("output", facts.outputs);
  std::cout << "parameters " << facts.parameters << " (" << facts.weight_bytes << " bytes)\n";
  for (const ErrorDetail& detail : model->unsupported()) {
    std::cout << "not supported: " << detail.pointer << " (" << detail.detail << ")\n";
  }
  return 0;
}

/// A package is a tar; its first member is named at the start of the file.
bool is_package(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return false;
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return file->text().substr(0, package::kMetadataMember.size()) == package::kMetadataMember;
}

}  // namespace

Action show_command(CLI::App& app) {
  const auto arguments = std::make_shared<ShowArguments>();
  app.add_option("MODEL|PACKAGE.tar", arguments->path, "model or package file")->required();
  add_model_options(app, arguments->format, arguments->signature);
  app.add_option("--input-shapes", arguments->input_shapes,
                 "for --graph and --tasks of a model with free dims");
  app.add_option("--input-values", arguments->input_values,
                 "with --graph or --tasks: inputs that are fixed for good, as JSON");
  app.add_flag("--graph", arguments->graph, "the imported graph, or a package's steps");
  app.add_flag("--ops", arguments->ops, "one operator a line with its count");
  app.add_flag("--tasks", arguments->tasks, "the distinct kernels, each with its count");
  return [arguments](const GlobalOptions& globals) {
    return is_package(arguments->path) ? show_package(*arguments, globals.json)
                                       : show_model(*arguments, globals.json);
  };
}

}  // namespace tensormill::cli
