#include "compiler/ir/op_def.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::ir {

namespace {

/// Whether a double run has doubles in place of the type: narrow floats are storage, and stay.
bool is_widened(DType dtype) { return is_float(dtype) && !is_narrow(dtype); }

/// `tensor` with float elements widened to f64.
Tensor widened(const Tensor& tensor) {
  if (!is_widened(tensor.dtype()) || tensor.dtype() == DType::kFloat64) return tensor;
  Tensor wide(DType::kFloat64, tensor.shape());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) wide.set_element(i, tensor.element_as_double(i));
  return wide;
}

/// In a double run a cast to a narrower float keeps the double.
Attrs widened(const Attrs& attrs) {
  Attrs result = attrs;
  for (const auto& [name, value] : attrs.all()) {
    const DType* dtype = std::get_if<DType>(&value);
    if (dtype != nullptr && is_widened(*dtype)) result.set(name, DType::kFloat64);
  }
  return result;
}

void evaluate_node(const Graph& graph, const Node& node, bool in_double, std::vector<Tensor>& values) {
  if (node.op == "fused") {
    std::vector<Tensor> inputs;
    for (ValueId input : node.inputs) inputs.push_back(values[static_cast<size_t>(input)]);
    const std::vector<Tensor> outputs = evaluate_reference(*node.region, inputs, in_double);
    for (size_t i = 0; i < outputs.size(); ++i) values[static_cast<size_t>(node.outputs[i])] = outputs[i];
    return;
  }
  const Attrs attrs = in_double ? widened(node.attrs) : node.attrs;
  ReferenceContext context{attrs, {}, {}};
  for (ValueId input : node.inputs) {
    context.inputs.push_back(input == kAbsent ? nullptr : &values[static_cast<size_t>(input)]);
  }
  for (ValueId output : node.outputs) {
    const ValueType& type = graph.value(output).type;
    const DType dtype = in_double && is_widened(type.dtype) ? DType::kFloat64 : type.dtype;
    values[static_cast<size_t>(output)] = Tensor::zeros(dtype, type.shape);
    context.outputs.push_back(&values[static_cast<size_t>(output)]);
  }
  try {
    graph.ops().get(node.op).reference(context);
  } catch (Error& error) {
    if (!node.origins.empty()) error.add_context("node \"" + node.origins.front() + "\"");
    throw;
  }
}

}  // namespace

std::vector<Tensor> evaluate_all_values(const Graph& graph, const std::vector<Tensor>& inputs,
                                        bool in_double) {
  TM_CHECK(inputs.size() == graph.inputs().size(), "evaluate needs one tensor per graph input");
  std::vector<Tensor> values(graph.values().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueType& type = graph.value(graph.inputs()[i]).type;
    TM_CHECK(inputs[i].shape() == type.shape, "input " + graph.value(graph.inputs()[i]).name + " has shape " +
                                                  tensormill::to_string(inputs[i].shape()) + ", expected " +
                                                  to_string(type));
    values[static_cast<size_t>(graph.inputs()[i])] = in_double ? widened(inputs[i]) : inputs[i];
  }
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.values()[i];
    if (value.constant) values[i] = in_double ? widened(*value.constant) : *value.constant;
  }
  for (const Node& node : graph.nodes()) evaluate_node(graph, node, in_double, values);
  return values;
}

std::vector<Tensor> evaluate_reference(const Graph& graph, const std::vector<Tensor>& inputs,
                                       bool in_double) {
  const std::vector<Tensor> values = evaluate_all_values(graph, inputs, in_double);
  std::vector<Tensor> outputs;
  for (ValueId output : graph.outputs()) outputs.push_back(values[static_cast<size_t>(output)]);
  return outputs;
}

}  // namespace tensormill::ir
