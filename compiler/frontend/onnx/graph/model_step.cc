#include "compiler/frontend/onnx/graph/model_step.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/ops/steps/model_step.h"
#include "runtime/base/error.h"
#include "runtime/base/model_step.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

namespace {

/// What attributes of the node say of its results.
struct Results {
  std::vector<std::string> names, dtypes;
  std::vector<int64_t> ranks, extents, open;

  /// `shape`: numbers, ops::kOpenExtent, or axes of operands; of strings without their width.
  void add(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
    const auto result = static_cast<int64_t>(names.size());
    names.push_back(name);
    dtypes.emplace_back(dtype_name(dtype));
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == ops::kOpenExtent) open.insert(open.end(), {result, static_cast<int64_t>(d)});
      extents.push_back(shape[d]);
    }
    // Strings have a width, which the run says as well.
    if (dtype == kString) extents.push_back(1);
    ranks.push_back(static_cast<int64_t>(shape.size()) + (dtype == kString ? 1 : 0));
  }
};

void add_step(ir::Graph& graph, const Results& results, const std::string& reason) {
  const std::vector<ir::ValueId> inputs = graph.inputs();
  graph.add_node(std::string(kModelStep), inputs,
                 {{"dtypes", results.dtypes},
                  {"ranks", results.ranks},
                  {"extents", results.extents},
                  {kModelStepOpen, results.open},
                  {kModelStepReason, reason}},
                 {}, results.names);
}

/// As ops/model_step.h has it, of a type's extent: the axis of an input that is the same.
int64_t extent_in(const ir::Graph& model, const ir::SymInt& extent) {
  if (extent.is_constant()) return extent.hint();
  for (size_t operand = 0; operand < model.inputs().size(); ++operand) {
    const ir::SymShape& shape = model.value(model.inputs()[operand]).type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (same(shape[axis], extent)) return ops::extent_of_axis(operand, axis);
  }
  return ops::kOpenExtent;
}

class ModelStep {
public:
  ModelStep(ir::Graph graph, const GraphProto& model) : graph_(std::move(graph)), model_(model) {}

  ir::Graph run(std::vector<std::string> wanted, const std::string& reason) {
    if (wanted.empty()) {
      for (const ValueInfoProto& output : model_.outputs) wanted.push_back(output.name);
    }
    std::vector<std::string> outputs;
    for (const std::string& name : wanted) {
      // An input that is handed through is no result.
      if (graph_.find_value(name)) {
        outputs.push_back(name);
      } else {
        const size_t before = results_.names.size();
        add_results(name);
        outputs.insert(outputs.end(), results_.names.begin() + static_cast<std::ptrdiff_t>(before),
                       results_.names.end());
      }
    }
    add_step(graph_, results_, reason);
    std::vector<ir::ValueId> values;
    for (const std::string& name : outputs) values.push_back(*graph_.find_value(name));
    graph_.set_outputs(std::move(values));
    return std::move(graph_);
  }

private:
  void add_results(const std::string& name) {
    const auto output = std::find_if(model_.outputs.begin(), model_.outputs.end(),
                                     [&](const ValueInfoProto& each) { return each.name == name; });
    const auto refuse = [&](const char* what) {
      throw Error(ErrorCode::kNotSupported, "output \"" + name + "\" " + what);
    };
    if (output == model_.outputs.end()) refuse("is no output of the model: its type is not declared");
    if (output->kind == ValueKind::kOther) refuse("holds what is no tensor");
    const std::optional<DType> dtype = dtype_of(output->elem_type);
    if (!dtype) refuse("has no dtype");
    const bool is_sequence =
        output->kind == ValueKind::kSequence || output->kind == ValueKind::kOptionalSequence;
    const bool is_optional =
        output->kind == ValueKind::kOptional || output->kind == ValueKind::kOptionalSequence;
    // A rank that is not declared is shown as one axis.
    const Dim open = std::string();
    DimShape shape = output->has_shape ? output->shape : DimShape{open};
    if (is_sequence && output->has_shape) shape.insert(shape.begin(), open);
    add_result(name, *dtype, shape);
    if (is_sequence) {
      const Dim rank = output->has_shape ? Dim(static_cast<int64_t>(output->shape.size())) : open;
      add_result(name + kExtentsOf, DType::kInt64, {open, rank});
    }
    if (is_optional) add_result(name + kPresenceOf, DType::kBool, {});
  }

  void add_result(const std::string& name, DType dtype, const DimShape& shape) {
    if (graph_.find_value(name) || std::count(results_.names.begin(), results_.names.end(), name) != 0)
      throw Error(ErrorCode::kNotSupported, "there are two values \"" + name + "\"");
    std::vector<int64_t> extents;
    for (const Dim& dim : shape) extents.push_back(extent_of(dim));
    results_.add(name, dtype, extents);
  }

  /// As ops/model_step.h has it: a name is that of an input's dim, or nobody's.
  int64_t extent_of(const Dim& dim) const {
    if (const auto* extent = std::get_if<int64_t>(&dim)) return *extent >= 0 ? *extent : ops::kOpenExtent;
    const auto& name = std::get<std::string>(dim);
    for (const ValueInfoProto& input : model_.inputs) {
      const auto axis = std::find(input.shape.begin(), input.shape.end(), Dim(name)) - input.shape.begin();
      const auto operand =
          std::find_if(graph_.inputs().begin(), graph_.inputs().end(),
                       [&](const ir::ValueId id) { return graph_.value(id).name == input.name; });
      const bool is_named = !name.empty() && static_cast<size_t>(axis) < input.shape.size();
      if (is_named && operand != graph_.inputs().end())
        return ops::extent_of_axis(static_cast<size_t>(operand - graph_.inputs().begin()),
                                   static_cast<size_t>(axis));
    }
    return ops::kOpenExtent;
  }

  ir::Graph graph_;
  const GraphProto& model_;
  Results results_;
};

}  // namespace

ir::Graph with_model_step(ir::Graph graph, const GraphProto& model, std::vector<std::string> wanted,
                          const std::string& reason) {
  return ModelStep(std::move(graph), model).run(std::move(wanted), reason);
}

ir::Graph as_model_step(const ir::Graph& model, const std::string& reason) {
  ir::Graph graph(model.ops());
  graph.set_name(model.name());
  const auto symbols = std::make_shared<ir::SymbolTable>();
  if (model.symbols() != nullptr) symbols->add_symbols_of(*model.symbols());
  for (const ir::ValueId input : model.inputs()) {
    const ir::Value& value = model.value(input);
    ir::SymShape shape;
    for (const ir::SymInt& extent : value.type.shape)
      shape.push_back(extent.is_constant() ? extent : ir::SymInt(extent.expr(), symbols));
    graph.add_input(value.name, {value.type.dtype, shape});
  }
  if (!symbols->hints().empty()) graph.set_symbols(symbols);
  Results results;
  for (const ir::ValueId output : model.outputs()) {
    const ir::Value& value = model.value(output);
    const ir::SymShape& shape = value.type.shape;
    std::vector<int64_t> extents;
    for (size_t d = 0; d < shape.size() - (value.type.dtype == kString ? 1 : 0); ++d)
      extents.push_back(extent_in(model, shape[d]));
    results.add(value.name, value.type.dtype, extents);
  }
  add_step(graph, results, reason);
  std::vector<ir::ValueId> outputs;
  for (const std::string& name : results.names) outputs.push_back(*graph.find_value(name));
  graph.set_outputs(std::move(outputs));
  return graph;
}

}  // namespace tensormill::frontend::onnx
