#include <algorithm>
#include <map>

#include "compiler/ir/branches.h"
#include "compiler/ir/loops.h"
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

/// Goes through nodes in loop_order, and back from the ends of loops.
class Evaluation {
public:
  Evaluation(const Graph& graph, bool in_double, std::vector<Tensor>& values)
      : graph_(graph),
        in_double_(in_double),
        values_(values),
        order_(loop_order(graph)),
        branches_(branches_around(graph)) {
    std::map<int64_t, size_t> begins;
    for (size_t i = 0; i < order_.size(); ++i) {
      const Node& node = graph.node(order_[i]);
      if (node.op == kLoopBegin) begins[node.attrs.int_of("loop")] = i;
      if (node.op != kLoopEnd) continue;
      const size_t begin = begins.at(node.attrs.int_of("loop"));
      loops_[begin] = loops_[i] = {begin, i, 0, 0};
    }
  }

  void run() {
    for (size_t i = 0; i < order_.size();) {
      const Node& node = graph_.node(order_[i]);
      if (node.op == kLoopBegin) {
        i = is_taken(order_[i]) ? enter(loops_.at(i), node) : loops_.at(i).end + 1;
      } else if (node.op == kLoopEnd) {
        i = repeat(loops_.at(loops_.at(i).begin), node);
      } else {
        if (is_taken(order_[i])) evaluate_node(graph_, node, in_double_, values_);
        ++i;
      }
    }
  }

private:
  struct Loop {
    size_t begin, end;  ///< in the order
    int64_t trip, limit;
  };

  /// What a branch that is not taken alone needs has no value.
  bool is_taken(NodeId id) const {
    if (branches_.empty()) return true;
    const BranchChain& chain = branches_[static_cast<size_t>(id)];
    return std::all_of(chain.begin(), chain.end(), [&](const BranchSide& side) {
      return (values_[static_cast<size_t>(side.condition)].element_as_int(0) != 0) == side.when;
    });
  }

  Tensor& value(ValueId id) { return values_[static_cast<size_t>(id)]; }
  static size_t count(const Node& node, const char* attribute) {
    return static_cast<size_t>(node.attrs.int_of(attribute));
  }

  size_t enter(Loop& loop, const Node& begin) {
    const size_t carried = count(begin, "carried");
    size_t next = 0;
    loop.trip = 0;
    loop.limit = INT64_MAX;
    if (count(begin, "max_trips") != 0) loop.limit = value(begin.inputs[next++]).element_as_int(0);
    const bool goes_on = count(begin, "condition") == 0 || value(begin.inputs[next++]).element_as_int(0) != 0;
    for (size_t i = 0; i < carried; ++i) value(begin.outputs[1 + i]) = value(begin.inputs[next++]);
    if (next < begin.inputs.size()) loop.limit = std::min(loop.limit, value(begin.inputs[next]).shape()[0]);
    const Node& end = graph_.node(order_[loop.end]);
    for (size_t i = carried; i < end.outputs.size(); ++i) {
      const ValueType& type = graph_.value(end.outputs[i]).type;
      const DType dtype = in_double_ && is_widened(type.dtype) ? DType::kFloat64 : type.dtype;
      value(end.outputs[i]) = Tensor::zeros(dtype, type.shape);
    }
    return go(loop, goes_on);
  }

  size_t repeat(Loop& loop, const Node& end) {
    const size_t carried = count(end, "carried");
    size_t next = 1;
    const bool goes_on = count(end, "condition") == 0 || value(end.inputs[next++]).element_as_int(0) != 0;
    const Node& begin = graph_.node(order_[loop.begin]);
    std::vector<Tensor> handed_on;
    for (size_t i = 0; i < carried; ++i) handed_on.push_back(value(end.inputs[next++]));
    for (size_t i = 0; i < carried; ++i) value(begin.outputs[1 + i]) = handed_on[i];
    for (size_t i = carried; next < end.inputs.size(); ++i, ++next) {
      const Tensor& part = value(end.inputs[next]);
      Tensor& all = value(end.outputs[i]);
      if (loop.trip >= all.shape()[0])
        throw Error(ErrorCode::kTensorData, "a loop has more iterations than parts have room");
      std::copy_n(static_cast<const std::byte*>(part.data()), part.num_bytes(),
                  static_cast<std::byte*>(all.data()) + static_cast<size_t>(loop.trip) * part.num_bytes());
    }
    ++loop.trip;
    return go(loop, goes_on);
  }

  /// To the next iteration, or behind the loop.
  size_t go(const Loop& loop, bool goes_on) {
    const Node& begin = graph_.node(order_[loop.begin]);
    const Node& end = graph_.node(order_[loop.end]);
    const size_t carried = count(begin, "carried"), rows = begin.outputs.size() - 1 - carried;
    if (!goes_on || loop.trip >= loop.limit) {
      for (size_t i = 0; i < carried; ++i) value(end.outputs[i]) = value(begin.outputs[1 + i]);
      value(end.outputs.back()).set_element_int(0, loop.trip);
      return loop.end + 1;
    }
    Tensor number(DType::kInt64, {});
    number.set_element_int(0, loop.trip);
    value(begin.outputs[0]) = number;
    for (size_t i = 0; i < rows; ++i) {
      const Tensor& all = value(begin.inputs[begin.inputs.size() - rows + i]);
      Tensor row(all.dtype(), Shape(all.shape().begin() + 1, all.shape().end()));
      std::copy_n(
          static_cast<const std::byte*>(all.data()) + static_cast<size_t>(loop.trip) * row.num_bytes(),
          row.num_bytes(), static_cast<std::byte*>(row.data()));
      value(begin.outputs[1 + carried + i]) = std::move(row);
    }
    return loop.begin + 1;
  }

  const Graph& graph_;
  bool in_double_;
  std::vector<Tensor>& values_;
  std::vector<NodeId> order_;
  std::vector<BranchChain> branches_;
  std::map<size_t, Loop> loops_;  ///< by the places of both ends; the begin's has the counts
};

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
  Evaluation(graph, in_double, values).run();
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
