#include <set>

#include "compiler/driver/generic_planner.h"
#include "compiler/driver/layers.h"
#include "compiler/frontend/formats/detect.h"
#include "compiler/frontend/importer/import_at.h"
#include "compiler/frontend/importer/importer.h"
#include "compiler/ir/printer.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/kernel.h"
#include "compiler/target/target.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/children/child_commands.h"
#include "server/cli/layout_options.h"
#include "server/cli/model_input.h"
#include "server/services/deployments/input_values.h"
#include "server/services/forms.h"

namespace tensormill::cli {

namespace {

using frontend::Importer;
using frontend::ModelFacts;
using frontend::ModelSource;

constexpr const char* kOnnxArchive = "onnx-archive";

/// Whether the file itself is what a format is, archives of such formats among them; else it is an archive of
/// an ONNX model and its files.
bool is_plain_file(std::string_view bytes) {
  const frontend::FileFormat found = frontend::detect_format(bytes);
  const bool is_archive =
      bytes.starts_with("PK\x03\x04") || (bytes.size() >= 512 && bytes.substr(257, 5) == "ustar");
  return !is_archive ||
         (found != frontend::FileFormat::kUnknown && found != frontend::FileFormat::kOnnxArchive);
}

struct OpenModel {
  std::unique_ptr<Importer> importer;
  std::string format;
};

/// A request without a format takes what the bytes are.
OpenModel open_model(const Json& request) {
  const int fd = jobs::kFirstInheritedFd;
  const std::shared_ptr<const MappedFile> file = MappedFile::map(fd, "model");
  frontend::check_importable(file->text());
  const std::string wanted = request.at("format").get<std::string>();
  const bool may_be_archive = wanted.empty() || wanted == kOnnxArchive;
  if (may_be_archive && !is_plain_file(file->text()))
    return {frontend::open_archive_importer(fd, ".", request.at("max_bytes").get<int64_t>()), kOnnxArchive};
  ModelSource source;
  source.model = file;
  source.digest = Digest::of(source.model->bytes());
  std::unique_ptr<Importer> model =
      frontend::make_importer(std::move(source), request.value("signature", std::string()));
  const std::string format = model->format();
  if (!wanted.empty() && format != wanted)
    throw Error(ErrorCode::kInvalidModel,
                "the bytes are of format \"" + format + "\", not of \"" + wanted + "\"");
  return {std::move(model), format};
}

Json values_json(const std::vector<frontend::SignatureValue>& values) {
  return server::specs_to_json(specs_of(values));
}

bool is_static(const ModelFacts& facts) {
  for (const auto& input : facts.inputs) {
    if (input.kind != frontend::ValueKind::kTensor) return false;
    for (const Dim& dim : input.shape) {
      const int64_t* extent = std::get_if<int64_t>(&dim);
      if (extent == nullptr || *extent < 0) return false;
    }
  }
  return true;
}

/// The error of an import with the file's graph beside what could be read, so that a reader sees where in it
/// the nodes are that cannot be imported.
Error with_file_graph(Error error, const std::string& graph) {
  if (graph.empty() || error.extra_json().empty()) return error;
  Json extra = parse_json(error.extra_json());
  if (extra.contains("model")) extra["model"]["graph"] = parse_json(graph);
  error.set_extra_json(extra.dump());
  return error;
}

/// Also refuses what compilation would refuse for whatever shapes it is asked for.
std::string facts_of(const Importer& model, const std::string& format) {
  const ModelFacts& facts = model.facts();
  // import_model throws with all unsupported nodes before it looks at shapes.
  if (is_static(facts) || !model.unsupported().empty()) {
    try {
      model.import({}, ops::standard_ops());
    } catch (const Error& error) {
      // What a run's values decide about has room in a package, or is interpreted.
      if (error.code() != ErrorCode::kShapeRequired) throw;
      // Of formats whose shapes are bound first: what is not there is told at any shape.
      if (!model.unsupported().empty())
        static_cast<void>(model.import_for_package({}, ShapeBuckets(), ops::standard_ops(), {}));
    }
  }
  Json json = {{"digest", model.digest().text()},
               {"format", format},
               {"producer", facts.producer},
               {"ir_version", facts.ir_version},
               {"opsets", facts.opsets},
               {"inputs", values_json(facts.inputs)},
               {"outputs", values_json(facts.outputs)},
               {"ops", facts.ops},
               {"parameters", facts.parameters},
               {"weight_bytes", facts.weight_bytes}};
  for (const frontend::NamedSignature& each : model.signatures())
    json["signatures"][each.name] = {{"inputs", values_json(each.inputs)},
                                     {"outputs", values_json(each.outputs)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

frontend::ImportOptions import_options(const Importer& model, const Json& request) {
  frontend::ImportOptions options;
  for (const auto& [name, shape] : request.at("input_shapes").items()) {
    options.input_shapes[name] = dims_from_json(shape);
  }
  server::bind_input_values(request.at("input_values"), specs_of(model.facts().inputs), options);
  options.outputs = request.at("outputs").get<std::vector<std::string>>();
  frontend::set_quantized(model, request.value("quantized", std::string()), options);
  return options;
}

/// What the keys of all variants' kernels are after the passes, with any algorithm of each layer.
std::vector<std::string> kernel_keys(const ir::Variants& variants, const Json& request) {
  passes::PipelineOptions pipeline;
  const target::Target target = target::parse_target(request.at("target").get<std::string>(), {});
  pipeline.context = {target.facts, request.at("opt_level").get<int>()};
  request.at("disabled_pass").get_to(pipeline.disabled);
  const std::optional<passes::DesiredLayout> layout = layout_of(request);
  std::set<std::string> keys;
  for (const ir::ShapedGraph& variant : variants.graphs) {
    if (layout) pipeline.context.layout = passes::bind_desired_layout(*layout, variant.graph);
    const driver::LayerProbe probe(variant.graph, pipeline);
    for (const ir::Graph& graph : probe.all_graphs()) {
      for (const plan::Kernel& kernel : plan::extract_kernels(graph).kernels) keys.insert(kernel.key.hex());
    }
  }
  return {keys.begin(), keys.end()};
}

std::string write_bundle(const Importer& model, const Json& request) {
  const auto buckets = request.at("shape_buckets").get<ShapeBuckets>();
  const ir::Variants variants = model.import_for_package(import_options(model, request), buckets,
                                                         ops::standard_ops(), &driver::takes_symbolic);
  const std::string description =
      ir::write_variants(variants, jobs::kFirstInheritedFd + 1, jobs::kFirstInheritedFd + 2);
  Json done = {{"digest", model.digest().text()}, {"variants", parse_json(description)}};
  if (request.at("kernels").get<bool>()) done["kernels"] = kernel_keys(variants, request);
  return done.dump();
}

Json names_of(const ir::Graph& graph, const std::vector<ir::ValueId>& values) {
  Json names = Json::array();
  for (const ir::ValueId value : values) {
    names.push_back(value == ir::kAbsent ? std::string() : graph.value(value).name);
  }
  return names;
}

/// Free dims are bound to 1: the picture of the graph does not depend on them.
ir::Graph import_for_show(const Importer& model) {
  frontend::ImportOptions options;
  for (const auto& input : model.facts().inputs) {
    DimShape shape = input.shape;
    for (Dim& dim : shape) {
      const int64_t* extent = std::get_if<int64_t>(&dim);
      if (extent == nullptr || *extent < 0) dim = int64_t{1};
    }
    const bool is_tensor = input.kind == frontend::ValueKind::kTensor;
    options.input_shapes[is_tensor ? input.name : input.name + "/0"] = shape;
  }
  ir::Variants variants = model.import_for_package(options, {}, ops::standard_ops(), {});
  return std::move(variants.graphs.front().graph);
}

/// Values are for people to read; a tokenizer's vocabulary is cut.
std::string shown_attribute(const ir::AttrValue& value) {
  constexpr size_t kShown = 500;
  std::string text = ir::to_string(value);
  if (text.size() > kShown) text = text.substr(0, kShown) + " ...";
  return text;
}

Json graph_json(const ir::Graph& graph) {
  Json nodes = Json::array();
  for (const ir::Node& node : graph.nodes()) {
    Json json = {{"op", node.op},
                 {"inputs", names_of(graph, node.inputs)},
                 {"outputs", names_of(graph, node.outputs)},
                 {"origins", node.origins}};
    for (const auto& [name, value] : node.attrs.all()) json["attributes"][name] = shown_attribute(value);
    if (node.region) json["region"] = graph_json(*node.region);
    nodes.push_back(std::move(json));
  }
  Json values = Json::object();
  for (const ir::Value& value : graph.values()) {
    values[value.name] = {{"type", ir::to_string(value.type)}, {"constant", value.constant.has_value()}};
  }
  return {{"name", graph.name()},
          {"inputs", names_of(graph, graph.inputs())},
          {"outputs", names_of(graph, graph.outputs())},
          {"nodes", std::move(nodes)},
          {"values", std::move(values)}};
}

std::string graph_of(const Importer& model, const Json& request) {
  ir::Graph graph = import_for_show(model);
  if (request.at("stage") == "imported") {
    Json json = graph_json(graph);
    json["stage"] = "imported";
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  passes::PipelineOptions pipeline;
  const auto text = request.at("target").get<std::string>();
  pipeline.context = {target::parse_target(text, {}).facts, request.at("opt_level").get<int>()};
  std::vector<std::string> ran;
  graph = passes::run_pipeline(std::move(graph), pipeline, ran);
  Json json = graph_json(graph);
  json["stage"] = "optimized";
  json["target"] = text;
  json["opt_level"] = pipeline.context.opt_level;
  json["passes"] = ran;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string child_import(jobs::ChildChannel&, std::span<const std::string> arguments) {
  TM_CHECK(arguments.size() == 1, "child-import needs its request");
  const Json request = parse_json(arguments[0]);
  const OpenModel opened = open_model(request);
  const Importer* model = opened.importer.get();
  const std::string mode = request.at("mode").get<std::string>();
  if (mode == "facts") {
    try {
      return facts_of(*model, opened.format);
    } catch (const Error& error) {
      throw with_file_graph(error, frontend::refused_graph(*model, error));
    }
  }
  if (mode == "bundle") return write_bundle(*model, request);
  TM_CHECK(mode == "graph", "unknown mode " + mode);
  return graph_of(*model, request);
}

}  // namespace tensormill::cli
