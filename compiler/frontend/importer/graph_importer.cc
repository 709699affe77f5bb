#include "compiler/frontend/importer/graph_importer.h"

#include "compiler/frontend/graph_file/graph_file.h"
#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/ops/ops.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

namespace {

std::vector<SignatureValue> values_of(const ir::Graph& graph, const std::vector<ir::ValueId>& ids) {
  std::vector<SignatureValue> values;
  for (const ir::ValueId id : ids) {
    const ir::Value& value = graph.value(id);
    SignatureValue made;
    made.name = value.name;
    made.dtype = value.type.dtype;
    for (const ir::SymInt& extent : value.type.shape) {
      const std::vector<std::string> symbols = extent.expr().symbols();
      const bool is_dim = symbols.size() == 1 && extent.expr().to_string() == symbols[0];
      made.shape.push_back(extent.is_constant() ? Dim(extent.hint())
                                                : Dim(is_dim ? symbols[0] : std::string()));
    }
    values.push_back(std::move(made));
  }
  return values;
}

ModelFacts facts_of(const ir::Graph& graph) {
  ModelFacts facts;
  facts.producer = "TensorMill graph \"" + graph.name() + "\"";
  facts.inputs = values_of(graph, graph.inputs());
  facts.outputs = values_of(graph, graph.outputs());
  for (const ir::Node& node : graph.nodes()) ++facts.ops[node.op];
  for (const ir::Value& value : graph.values()) {
    if (!value.constant) continue;
    facts.parameters += value.constant->num_elements();
    facts.weight_bytes += static_cast<int64_t>(value.constant->num_bytes());
  }
  return facts;
}

class GraphImporter final : public Importer {
public:
  explicit GraphImporter(ModelSource source)
      : Importer(std::move(source)), file_(graph_file::read(this->source().model, ops::standard_ops())) {
    facts_ = facts_of(file_.graph);
  }

  std::string format() const override { return "tmg"; }
  // An operator that is not there is an error of the text.
  std::vector<ErrorDetail> unsupported() const override { return {}; }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& /*ops*/) const override {
    BoundInputs bound = bind_inputs(facts_, options);
    graph_file::Binding binding;
    binding.shapes = std::move(bound.shapes);
    binding.symbols = std::move(bound.symbols);
    binding.constants = {options.input_values.begin(), options.input_values.end()};
    binding.values = {options.run_values.begin(), options.run_values.end()};
    binding.outputs = options.outputs;
    return graph_file::bind(file_, binding);
  }

private:
  const graph_file::GraphFile file_;
};

}  // namespace

std::unique_ptr<Importer> make_graph_importer(ModelSource source) {
  return std::make_unique<GraphImporter>(std::move(source));
}

}  // namespace tensormill::frontend
