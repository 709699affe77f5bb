#include <iostream>
#include <memory>

#include "compiler/frontend/graph_file/graph_file.h"
#include "compiler/frontend/importer/importer.h"
#include "compiler/ops/ops.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/model_input.h"
#include "server/cli/terminal.h"

namespace tensormill::cli {

namespace {

struct ImportArguments {
  std::string model;
  std::string format;
  std::string signature;
  std::string output;
  std::string input_shapes;
  std::string input_values;
  std::string outputs;
};

int import_to_file(const ImportArguments& arguments, bool json) {
  check_output("-o", arguments.output);
  const std::unique_ptr<frontend::Importer> model =
      open_model_file(arguments.model, arguments.format, arguments.signature);
  frontend::ImportOptions options;
  options.input_shapes = parse_input_shapes(arguments.input_shapes);
  bind_input_values(arguments.input_values, *model, options);
  options.outputs = split_list(arguments.outputs);
  // Dims that nothing binds stay free in the file.
  const ir::Graph graph = model->import(frontend::with_symbols(model->facts(), options), ops::standard_ops());
  frontend::graph_file::write(arguments.output, graph);
  if (json) {
    print_json(Json{{"output", arguments.output}, {"nodes", graph.nodes().size()}});
  } else {
    std::cout << arguments.output << ": " << graph.nodes().size() << " nodes\n";
  }
  return 0;
}

}  // namespace

Action import_command(CLI::App& app) {
  const auto arguments = std::make_shared<ImportArguments>();
  app.add_option("MODEL", arguments->model, "model file")->required();
  add_model_options(app, arguments->format, arguments->signature);
  app.add_option("-o,--output", arguments->output, "graph file to write")->required();
  app.add_option("--input-shapes", arguments->input_shapes, "\"data:[1,3,224,224]\"; other dims stay free");
  app.add_option("--input-values", arguments->input_values, "inputs that are fixed for good, as JSON");
  app.add_option("--outputs", arguments->outputs, "A,B: instead of the model's own");
  return [arguments](const GlobalOptions& globals) { return import_to_file(*arguments, globals.json); };
}

}  // namespace tensormill::cli
