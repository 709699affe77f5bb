#include "compiler/ir/variants.h"

#include <algorithm>
#include <cstring>

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

Json formula_json(const DimFormula& formula) {
  Json products = Json::array();
  for (const DimProduct& product : formula.products) {
    Json factors = Json::array();
    for (const DimTerm& term : product.factors) factors.push_back({term.dim, term.mul, term.add, term.div});
    products.push_back({product.scale, std::move(factors)});
  }
  return {{"offset", formula.offset}, {"products", std::move(products)}};
}

DimFormula formula_from(const Json& json) {
  DimFormula formula{json.at("offset").get<int64_t>(), {}};
  for (const Json& product : json.at("products")) {
    DimProduct& added = formula.products.emplace_back();
    product.at(0).get_to(added.scale);
    for (const Json& term : product.at(1))
      added.factors.push_back({term.at(0).get<int32_t>(), term.at(1).get<int64_t>(),
                               term.at(2).get<int64_t>(), term.at(3).get<int64_t>()});
  }
  return formula;
}

}  // namespace

std::vector<int64_t> with_dependents(std::vector<int64_t> dims, const std::vector<DependentDim>& dependents) {
  for (const DependentDim& dependent : dependents)
    dims[dependent.dim] = std::max<int64_t>(evaluate(dependent.value, dims), 0);
  return dims;
}

std::optional<size_t> same_dim(const DimFormula& formula) {
  if (formula.offset != 0 || formula.products.size() != 1) return std::nullopt;
  const DimProduct& product = formula.products[0];
  if (product.scale != 1 || product.factors.size() != 1) return std::nullopt;
  const DimTerm& term = product.factors[0];
  if (term.mul != 1 || term.add != 0 || term.div != 1) return std::nullopt;
  return static_cast<size_t>(term.dim);
}

bool has_nodes_of(const Graph& graph, const Graph& sample) {
  const auto same_rank = [](const Value& a, const Value& b) {
    return a.type.shape.size() == b.type.shape.size();
  };
  return std::equal(graph.values().begin(), graph.values().end(), sample.values().begin(),
                    sample.values().end(), same_rank) &&
         graph.outputs() == sample.outputs() &&
         std::equal(graph.nodes().begin(), graph.nodes().end(), sample.nodes().begin(), sample.nodes().end(),
                    [](const Node& a, const Node& b) {
                      return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs;
                    });
}

bool has_constants_of(const Graph& graph, const std::vector<const Graph*>& samples) {
  const auto are_equal = [](const std::optional<Tensor>& a, const std::optional<Tensor>& b) {
    return a && b && a->dtype() == b->dtype() && a->shape() == b->shape() &&
           (a->data() == b->data() || std::memcmp(a->data(), b->data(), a->num_bytes()) == 0);
  };
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const std::optional<Tensor>& common = samples.front()->values()[i].constant;
    const auto has_it = [&](const Graph* sample) { return are_equal(common, sample->values()[i].constant); };
    if (!has_it(&graph) && std::all_of(samples.begin(), samples.end(), has_it)) return false;
  }
  return true;
}

bool has_form(const SampleSet& set, const std::vector<int64_t>& dims) {
  std::vector<int64_t> settled = with_dependents(dims, set.dependents);
  for (const DependentDim& each : set.spread) {
    if (dims[each.dim] == 1) settled[each.dim] = 1;
  }
  return settled == dims;
}

namespace {

Json checks_json(const std::vector<ShapeCheck>& checks) {
  Json json = Json::array();
  for (const ShapeCheck& check : checks) json.push_back({{"dims", check.dims}, {"outputs", check.outputs}});
  return json;
}

Json dependents_json(const std::vector<DependentDim>& dependents) {
  Json json = Json::array();
  for (const DependentDim& each : dependents)
    json.push_back({{"dim", each.dim}, {"value", formula_json(each.value)}});
  return json;
}

Json set_json(const SampleSet& set) {
  Json probes = Json::array();
  for (const Probe& probe : set.probes) probes.push_back({{"dim", probe.dim}, {"dims", probe.graph.dims}});
  return {{"samples", dims_of(set.samples)},
          {"small", dims_of(set.small)},
          {"alone", dims_of(set.alone)},
          {"checks", checks_json(set.checks)},
          {"multiples", set.multiples},
          {"minimums", set.minimums},
          {"maximums", set.maximums},
          {"probes", std::move(probes)},
          {"dependents", dependents_json(set.dependents)},
          {"spread", dependents_json(set.spread)},
          {"spread_samples", dims_of(set.spread_samples)},
          {"spread_checks", checks_json(set.spread_checks)},
          {"goes_first", set.goes_first}};
}

std::vector<ShapeCheck> checks_from(const Json& json) {
  std::vector<ShapeCheck> checks;
  for (const Json& check : json)
    checks.push_back(
        {check.at("dims").get<std::vector<int64_t>>(), check.at("outputs").get<std::vector<Shape>>()});
  return checks;
}

std::vector<DependentDim> dependents_from(const Json& json) {
  std::vector<DependentDim> dependents;
  for (const Json& each : json)
    dependents.push_back({each.at("dim").get<size_t>(), formula_from(each.at("value"))});
  return dependents;
}

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

  void read_set(const Json& json, SampleSet& set) {
    set.samples = take(json.at("samples"));
    set.small = take(json.at("small"));
    set.alone = take(json.at("alone"));
    set.spread_samples = take(json.at("spread_samples"));
    set.checks = checks_from(json.at("checks"));
    json.at("multiples").get_to(set.multiples);
    json.at("minimums").get_to(set.minimums);
    json.at("maximums").get_to(set.maximums);
    for (const Json& probe : json.at("probes"))
      set.probes.push_back(
          {probe.at("dim").get<size_t>(), {probe.at("dims").get<std::vector<int64_t>>(), next()}});
    set.dependents = dependents_from(json.at("dependents"));
    set.spread = dependents_from(json.at("spread"));
    set.spread_checks = checks_from(json.at("spread_checks"));
    json.at("goes_first").get_to(set.goes_first);
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

}  // namespace

namespace {

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
  const auto add = [&](const std::vector<ShapedGraph>& list) {
    for (const ShapedGraph& graph : list) graphs.push_back(&graph.graph);
  };
  Json special = Json::array();
  const auto add_set = [&](const SampleSet& set) {
    add(set.samples);
    add(set.small);
    add(set.alone);
    add(set.spread_samples);
    for (const Probe& probe : set.probes) graphs.push_back(&probe.graph.graph);
  };
  add(variants.graphs);
  add_set(variants);
  for (const SampleSet& set : variants.special) {
    add_set(set);
    special.push_back(set_json(set));
  }
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
              {"generic", set_json(variants)},
              {"quantizations", std::move(quantizations)},
              {"notes", std::move(notes)},
              {"special", std::move(special)},
              {"leaves_out", variants.leaves_out},
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
  reader.read_set(json.at("generic"), variants);
  for (const Json& set : json.at("special")) reader.read_set(set, variants.special.emplace_back());
  json.at("leaves_out").get_to(variants.leaves_out);
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
