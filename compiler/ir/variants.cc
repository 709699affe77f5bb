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

DimShape shape_from(const Json& json) {
  DimShape shape;
  for (const Json& dim : json) {
    if (dim.is_string()) {
      shape.emplace_back(dim.get<std::string>());
    } else {
      shape.emplace_back(dim.get<int64_t>());
    }
  }
  return shape;
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

std::string write_variants(const Variants& variants, int text_fd, int constants_fd) {
  std::vector<const Graph*> graphs;
  for (const auto* list : {&variants.graphs, &variants.samples, &variants.small}) {
    for (const ShapedGraph& graph : *list) graphs.push_back(&graph.graph);
  }
  write_bundle(graphs, text_fd, constants_fd);
  Json shapes = Json::array();
  for (const DimShape& shape : variants.input_shapes) {
    Json dims = Json::array();
    for (const Dim& dim : shape) std::visit([&](const auto& value) { dims.push_back(value); }, dim);
    shapes.push_back(std::move(dims));
  }
  Json checks = Json::array();
  for (const ShapeCheck& check : variants.checks)
    checks.push_back({{"dims", check.dims}, {"outputs", check.outputs}});
  Json dependents = Json::array();
  for (const DependentDim& each : variants.dependents)
    dependents.push_back({{"dim", each.dim}, {"value", formula_json(each.value)}});
  return Json{{"free_dims", variants.free_dims},    {"input_shapes", std::move(shapes)},
              {"graphs", dims_of(variants.graphs)}, {"samples", dims_of(variants.samples)},
              {"small", dims_of(variants.small)},   {"checks", std::move(checks)},
              {"multiples", variants.multiples},    {"dependents", std::move(dependents)}}
      .dump();
}

Variants read_variants(const std::string& description, const MappedFile& text,
                       const std::shared_ptr<const MappedFile>& constants, const OpRegistry& ops) {
  const Json json = parse_json(description);
  std::vector<Graph> graphs = read_bundle(text, constants, ops);
  Variants variants;
  json.at("free_dims").get_to(variants.free_dims);
  json.at("multiples").get_to(variants.multiples);
  for (const Json& each : json.at("dependents"))
    variants.dependents.push_back({each.at("dim").get<size_t>(), formula_from(each.at("value"))});
  for (const Json& shape : json.at("input_shapes")) variants.input_shapes.push_back(shape_from(shape));
  if (graphs.size() != json.at("graphs").size() + json.at("samples").size() + json.at("small").size())
    throw Error(ErrorCode::kInvalidModel, "graph bundle: another number of graphs than described");
  for (const Json& check : json.at("checks"))
    variants.checks.push_back(
        {check.at("dims").get<std::vector<int64_t>>(), check.at("outputs").get<std::vector<Shape>>()});
  size_t next = 0;
  const auto take = [&](const char* name, std::vector<ShapedGraph>& list) {
    for (const Json& dims : json.at(name))
      list.push_back({dims.get<std::vector<int64_t>>(), std::move(graphs[next++])});
  };
  take("graphs", variants.graphs);
  take("samples", variants.samples);
  take("small", variants.small);
  return variants;
}

}  // namespace tensormill::ir
