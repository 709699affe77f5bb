#include "compiler/frontend/onnx/turning_numbers.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/frontend/onnx/check_model.h"
#include "compiler/frontend/onnx/model_proto.h"
#include "compiler/frontend/onnx/tensor_data.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

// Below, each extent is a sample or is checked; above, what is made of an extent squared fills the memory.
constexpr int64_t kLeast = 40, kMost = int64_t{1} << 13;
constexpr size_t kMostNumbers = 8;
constexpr int64_t kMostElements = 4;

constexpr std::array<std::string_view, 9> kComparing = {
    "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Min", "Max", "Clip", "Mod"};

class Comparisons {
public:
  explicit Comparisons(const ModelSource& source) : source_(source) {}

  void add(const GraphProto& graph) {
    for (const TensorProto& tensor : graph.initializers) note(tensor.name, tensor);
    for (const NodeProto& node : graph.nodes) {
      if (node.op_type == "Constant") note_constant(node);
      const bool compares = std::find(kComparing.begin(), kComparing.end(), node.op_type) != kComparing.end();
      for (const std::string& input : node.inputs) {
        if (const auto found = constants_.find(input); compares && found != constants_.end())
          numbers_.insert(found->second.begin(), found->second.end());
      }
      for (const AttributeProto& attribute : node.attributes) {
        for (const auto& inner : attribute.graphs) add(*inner);
      }
    }
  }

  std::set<int64_t> least() const {
    std::set<int64_t> few;
    for (const int64_t number : numbers_) {
      if (few.size() < kMostNumbers) few.insert(number);
    }
    return few;
  }

private:
  void keep(const std::string& name, double value) {
    if (value >= static_cast<double>(kLeast) && value <= static_cast<double>(kMost))
      constants_[name].insert(static_cast<int64_t>(value));
  }

  void note(const std::string& name, const TensorProto& tensor) {
    const std::optional<DType> dtype = dtype_of(tensor.data_type);
    const bool is_number = dtype && *dtype != kString && *dtype != DType::kBool && !is_narrow(*dtype);
    if (!is_number || num_elements(tensor.dims) > kMostElements) return;
    check_tensor(tensor, source_);
    const Tensor read = read_tensor(tensor, source_);
    for (int64_t i = 0; i < read.num_elements(); ++i)
      keep(name, is_float(*dtype) ? read.element_as_double(i) : static_cast<double>(read.element_as_int(i)));
  }

  void note_constant(const NodeProto& node) {
    if (node.outputs.empty()) return;
    for (const AttributeProto& attribute : node.attributes) {
      if (attribute.t) note(node.outputs[0], *attribute.t);
      if (attribute.name == "value_int") keep(node.outputs[0], static_cast<double>(attribute.i));
      if (attribute.name == "value_float") keep(node.outputs[0], attribute.f);
      if (static_cast<int64_t>(attribute.ints.size()) > kMostElements) continue;
      for (const int64_t each : attribute.ints) keep(node.outputs[0], static_cast<double>(each));
    }
  }

  const ModelSource& source_;
  std::map<std::string, std::set<int64_t>> constants_;  ///< by name; of a name in several graphs, all
  std::set<int64_t> numbers_;
};

}  // namespace

std::set<int64_t> compared_numbers(const ModelSource& source) {
  const ModelProto model = checked_model(source);
  Comparisons comparisons(source);
  comparisons.add(model.graph);
  for (const FunctionProto& function : model.functions) comparisons.add(function.body);
  return comparisons.least();
}

void add_turning_checks(const ImportAt& import, const std::set<int64_t>& numbers, size_t own_dims,
                        ir::SampleSet& set) {
  if (set.samples.empty()) return;
  std::set<std::vector<int64_t>> seen;
  for (const ir::ShapeCheck& check : set.checks) seen.insert(check.dims);
  for (size_t d = 0; d < own_dims; ++d) {
    const bool is_dependent =
        std::any_of(set.dependents.begin(), set.dependents.end(),
                    [&](const ir::DependentDim& dependent) { return dependent.dim == d; });
    const int64_t step = set.multiples[d];
    for (const int64_t number : numbers) {
      for (const int64_t beside : {-1, 0, 1}) {
        std::vector<int64_t> dims = set.samples.front().dims;
        dims[d] = (number / step + beside) * step;
        dims = ir::with_dependents(std::move(dims), set.dependents);
        if (is_dependent || !seen.insert(dims).second) continue;
        const std::optional<ir::Graph> graph = import(dims);
        if (!graph) continue;
        ir::ShapeCheck check{dims, {}};
        for (const ir::ValueId output : graph->outputs())
          check.outputs.push_back(graph->value(output).type.shape);
        set.checks.push_back(std::move(check));
      }
    }
  }
}

}  // namespace tensormill::frontend::onnx
