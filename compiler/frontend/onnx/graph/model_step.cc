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
};

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
    const std::vector<ir::ValueId> inputs = graph_.inputs();
    graph_.add_node(std::string(kModelStep), inputs,
                    {{"dtypes", results_.dtypes},
                     {"ranks", results_.ranks},
                     {"extents", results_.extents},
                     {kModelStepOpen, results_.open},
                     {kModelStepReason, reason}},
                    {}, results_.names);
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
    const auto result = static_cast<int64_t>(results_.names.size());
    results_.names.push_back(name);
    results_.dtypes.emplace_back(dtype_name(dtype));
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t extent = extent_of(shape[d]);
      if (extent == ops::kOpenExtent)
        results_.open.insert(results_.open.end(), {result, static_cast<int64_t>(d)});
      results_.extents.push_back(extent);
    }
    // Strings have a width, which the run says as well.
    if (dtype == kString) results_.extents.push_back(1);
    results_.ranks.push_back(static_cast<int64_t>(shape.size()) + (dtype == kString ? 1 : 0));
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

}  // namespace tensormill::frontend::onnx
