#include "compiler/ir/variants.h"

#include <algorithm>

#include "compiler/ir/bundle.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::ir {

namespace {

Json dims_of(const std::vector<ShapedGraph>& graphs) {
  Json all = Json::array();
  for (const ShapedGraph& graph : graphs) all.push_back(graph.dims);
  return all;
}

}  // namespace

std::vector<int64_t> with_dependents(std::vector<int64_t> dims, const std::vector<DependentDim>& dependents) {
  for (const DependentDim& dependent : dependents)
    dims[dependent.dim] = std::max<int64_t>(evaluate(dependent.value, dims), 0);
  return dims;
}

namespace {

/// Takes the graphs that a description lists from a bundle, in order.
class BundleReader {
public:
  explicit BundleReader(std::vector<Graph> graphs) : graphs_(std::move(graphs)) {}

  std::vector<ShapedGraph> take(const Json& all_dims) {
    std::vector<ShapedGraph> list;
    for (const Json& dims : all_dims) list.push_back({dims.get<std::vector<int64_t>>(), next()});
    return list;
  }

  Graph next() {
    if (next_ == graphs_.size()) fail();
    return std::move(graphs_[next_++]);
  }

  void finish() const {
    if (next_ != graphs_.size()) fail();
  }

private:
  [[noreturn]] static void fail() {
    throw Error(ErrorCode::kInvalidModel, "graph bundle: another number of graphs than described");
  }

  std::vector<Graph> graphs_;
  size_t next_ = 0;
};

/// The files as constants of a graph without nodes.
Graph graph_of(const KeptModel& model, const OpRegistry& ops) {
  Graph graph(ops);
  std::vector<ValueId> files;
  for (const auto& file : model.files) files.push_back(graph.add_constant("file", file.second));
  graph.set_outputs(files);
  return graph;
}

KeptModel kept_of(const Graph& graph, const Json& json) {
  KeptModel model{{}, json.at("options").get<std::string>()};
  const auto names = json.at("names").get<std::vector<std::string>>();
  for (size_t i = 0; i < names.size(); ++i) {
    const std::optional<Tensor>& bytes = graph.value(graph.outputs().at(i)).constant;
    if (!bytes) throw Error(ErrorCode::kInvalidModel, "graph bundle: a file of the model is missing");
    model.files.emplace_back(names[i], *bytes);
  }
  return model;
}

}  // namespace

std::string write_variants(const Variants& variants, int text_fd, int constants_fd) {
  std::vector<const Graph*> graphs;
  for (const ShapedGraph& graph : variants.graphs) graphs.push_back(&graph.graph);
  Json symbols = Json::array();
  const auto add_symbolic = [&](const SymbolicModel& model) {
    graphs.push_back(&model.graph);
    symbols.push_back(model.symbols);
  };
  if (variants.symbolic) add_symbolic(*variants.symbolic);
  for (const SymbolicModel& ones : variants.symbolic_ones) add_symbolic(ones);
  std::optional<Graph> kept;
  Json model;
  if (variants.model && !graphs.empty()) {
    kept = graph_of(*variants.model, graphs.front()->ops());
    graphs.push_back(&*kept);
    for (const auto& file : variants.model->files) model["names"].push_back(file.first);
    model["options"] = variants.model->options;
  }
  write_bundle(graphs, text_fd, constants_fd);
  Json quantizations = Json::object();
  for (const auto& [name, quantization] : variants.quantizations)
    quantizations[name] = quantization_to_json(quantization);
  Json notes = Json::object();
  for (const auto& [name, said] : variants.notes) notes[name] = notes_to_json(said);
  Json shapes = Json::array();
  for (const DimShape& shape : variants.input_shapes) shapes.push_back(dims_to_json(shape));
  return Json{{"free_dims", variants.free_dims},
              {"input_shapes", std::move(shapes)},
              {"graphs", dims_of(variants.graphs)},
              {"quantizations", std::move(quantizations)},
              {"notes", std::move(notes)},
              {"leaves_out", variants.leaves_out},
              {"not_symbolic", variants.not_symbolic},
              {"symbols", std::move(symbols)},
              {"model", std::move(model)}}
      .dump();
}

Variants read_variants(const std::string& description, const MappedFile& text,
                       const std::shared_ptr<const MappedFile>& constants, const OpRegistry& ops) {
  const Json json = parse_json(description);
  Variants variants;
  json.at("free_dims").get_to(variants.free_dims);
  for (const Json& shape : json.at("input_shapes")) variants.input_shapes.push_back(dims_from_json(shape));
  BundleReader reader(read_bundle(text, constants, ops));
  variants.graphs = reader.take(json.at("graphs"));
  json.at("leaves_out").get_to(variants.leaves_out);
  json.at("not_symbolic").get_to(variants.not_symbolic);
  for (const auto& [name, quantization] : json.at("quantizations").items())
    variants.quantizations.emplace(name, quantization_from_json(quantization));
  for (const auto& [name, said] : json.at("notes").items())
    variants.notes.emplace(name, notes_from_json(said));
  for (const Json& symbols : json.at("symbols")) {
    SymbolicModel model{reader.next(), symbols.get<std::vector<std::string>>()};
    if (variants.symbolic) {
      variants.symbolic_ones.push_back(std::move(model));
    } else {
      variants.symbolic = std::move(model);
    }
  }
  if (const Json& model = json.at("model"); !model.is_null()) variants.model = kept_of(reader.next(), model);
  reader.finish();
  return variants;
}

}  // namespace tensormill::ir
