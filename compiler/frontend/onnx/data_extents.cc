#include "compiler/frontend/onnx/data_extents.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "compiler/ir/op_def.h"
#include "compiler/ops/host_steps.h"
#include "compiler/te/simplify.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::frontend::onnx {

namespace {

/// The axis of a value that `count` elements have.
struct DataAxis {
  size_t axis = 0;
  ir::ValueId count = ir::kAbsent;
  bool operator==(const DataAxis&) const = default;
};

std::set<ir::ValueId> ancestors_of(const ir::Graph& graph, ir::ValueId value) {
  std::set<ir::ValueId> seen;
  std::vector<ir::ValueId> open{value};
  while (!open.empty()) {
    const ir::ValueId id = open.back();
    open.pop_back();
    if (id == ir::kAbsent || !seen.insert(id).second || graph.value(id).producer == ir::kAbsent) continue;
    const std::vector<ir::ValueId>& inputs = graph.node(graph.value(id).producer).inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  return seen;
}

/// Which axis of each output of a node is the data axis of what it reads.
class NodeAxes {
public:
  /// `axes`: of the node's inputs.
  NodeAxes(const ir::Graph& graph, const ir::Node& node, const std::vector<std::optional<size_t>>& axes) {
    ir::ComputeContext context{node.attrs, {}, {}, {}, node.op};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ir::ValueId id = node.inputs[i];
      if (id == ir::kAbsent) {
        context.inputs.push_back(nullptr);
        context.input_types.emplace_back();
        continue;
      }
      const ir::ValueType& type = graph.value(id).type;
      program_.inputs.push_back(te::placeholder("p" + std::to_string(i), type.dtype, type.shape));
      context.inputs.push_back(program_.inputs.back());
      context.input_types.push_back(type);
      if (axes[i]) axes_[program_.inputs.back().get()] = *axes[i];
    }
    for (const ir::ValueId output : node.outputs) context.output_types.push_back(graph.value(output).type);
    program_.outputs = graph.ops().get(node.op).compute(context);
  }

  /// By output; nothing where elements are mixed.
  std::optional<std::vector<std::optional<size_t>>> run() {
    for (const te::Tensor& stage : te::stages_of(program_)) {
      if (!visit(*stage)) return std::nullopt;
    }
    std::vector<std::optional<size_t>> result;
    for (const te::Tensor& output : program_.outputs) {
      const auto found = axes_.find(output.get());
      result.push_back(found == axes_.end() ? std::nullopt : std::optional(found->second));
    }
    return result;
  }

private:
  bool visit(const te::TensorNode& stage) {
    te::BoundsContext context;
    for (const te::Axis& axis : stage.axes) context.bind_extent(axis.var, te::Expr(0), axis.extent);
    if (stage.reduction) {
      for (const te::Axis& axis : stage.reduction->axes)
        context.bind_extent(axis.var, te::Expr(0), axis.extent);
    }
    bool whole = true;
    std::optional<size_t> found;
    const auto read = [&](const te::Expr& expr) {
      if (expr->op != te::ExprOp::kRead) return;
      const auto source = axes_.find(expr->tensor.get());
      if (source == axes_.end()) return;
      const std::optional<size_t> own =
          axis_at(stage, expr->args[source->second], expr->tensor->shape[source->second], context);
      whole = whole && own && (!found || found == own);
      found = own;
    };
    for (const te::Expr& body : stage.body) te::for_each_expr(body, read);
    if (stage.reduction) {
      for (const te::Expr& source : stage.reduction->source) te::for_each_expr(source, read);
    }
    if (found) axes_[&stage] = *found;
    return whole;
  }

  /// The axis of the stage whose index is `index`.
  static std::optional<size_t> axis_at(const te::TensorNode& stage, const te::Expr& index,
                                       const te::Expr& extent, const te::BoundsContext& context) {
    for (size_t i = 0; i < stage.axes.size(); ++i) {
      const te::Expr own(stage.axes[i].var);
      if (te::equal(stage.axes[i].extent, extent) && context.proves(index == own)) return i;
    }
    return std::nullopt;
  }

  te::Program program_;
  std::map<const te::TensorNode*, size_t> axes_;
};

/// Which counts are computed alike: each stands for itself or for the first one like it.
class CountNumbers {
public:
  explicit CountNumbers(const ir::Graph& graph) : graph_(graph), same_(graph.values().size()) {
    std::iota(same_.begin(), same_.end(), ir::ValueId{0});
    for (size_t id = 0; id < same_.size(); ++id) number_known(static_cast<ir::ValueId>(id));
    for (const ir::Node& node : graph.nodes()) visit(node);
  }

  ir::ValueId of(ir::ValueId id) const { return id == ir::kAbsent ? id : same_[static_cast<size_t>(id)]; }

private:
  bool is_number(ir::ValueId id) const {
    const ir::ValueType& type = graph_.value(id).type;
    return !is_float(type.dtype) && num_elements(type.shape) == 1;
  }

  void set(ir::ValueId id, ir::ValueId first) { same_[static_cast<size_t>(id)] = first; }

  void number_known(ir::ValueId id) {
    const ir::Value& value = graph_.value(id);
    if (!is_number(id) || !value.known) return;
    const std::pair key(value.type, value.known->element_as_int(0));
    for (const auto& [number, first] : known_) {
      if (number == key) return set(id, first);
    }
    known_.emplace_back(key, id);
  }

  void visit(const ir::Node& node) {
    const ir::ValueId count = node.outputs.back();
    const std::vector<std::optional<size_t>> axes = ops::data_axes(node);
    if (!axes.empty()) {
      for (size_t i = 0; i < axes.size() && node.op != "take_first"; ++i) {
        if (axes[i]) most_[count] = graph_.value(node.outputs[i]).type.shape[*axes[i]];
      }
      if (node.op == "take_first") visit_taken(node, *axes[0]);
      return;
    }
    if (node.outputs.size() != 1 || !is_number(count) || of(count) != count) return;
    std::vector<ir::ValueId> inputs;
    for (const ir::ValueId input : node.inputs) inputs.push_back(of(input));
    for (const auto& [first, operands] : seen_[node.op]) {
      const bool is_same = operands == inputs && first->attrs == node.attrs &&
                           graph_.value(first->outputs[0]).type == graph_.value(count).type;
      if (is_same) return set(count, of(first->outputs[0]));
    }
    seen_[node.op].emplace_back(&node, std::move(inputs));
  }

  /// The count is n within [0, extent]: n itself, where n is the count of no more than that.
  void visit_taken(const ir::Node& node, size_t axis) {
    const ir::ValueId n = of(node.inputs[1]), count = node.outputs[1];
    const int64_t extent = graph_.value(node.outputs[0]).type.shape[axis];
    const auto most = most_.find(n);
    if (most != most_.end() && most->second <= extent) return set(count, n);
    const auto [first, is_new] = taken_.emplace(std::pair(n, extent), count);
    if (!is_new) set(count, first->second);
    most_[first->second] = extent;
  }

  const ir::Graph& graph_;
  std::vector<ir::ValueId> same_;
  std::vector<std::pair<std::pair<ir::ValueType, int64_t>, ir::ValueId>> known_;
  std::map<std::string, std::vector<std::pair<const ir::Node*, std::vector<ir::ValueId>>>> seen_;
  std::map<std::pair<ir::ValueId, int64_t>, ir::ValueId> taken_;
  std::map<ir::ValueId, int64_t> most_;  ///< of counts of host steps
};

/// Where the axis stands after a change of shape.
std::optional<size_t> reshaped_axis(const Shape& from, size_t axis, const Shape& to) {
  int64_t before = 1, passed = 1;
  for (size_t d = 0; d < axis; ++d) before *= from[d];
  for (size_t d = 0; d < to.size(); ++d) {
    if (passed == before && to[d] == from[axis]) return d;
    passed *= to[d];
  }
  return std::nullopt;
}

class Tracker {
public:
  explicit Tracker(const ir::Graph& graph) : graph_(graph), counts_(graph), axes_(graph.values().size()) {
    for (const ir::Node& node : graph.nodes()) visit(node);
  }

  const std::optional<DataAxis>& axis(ir::ValueId id) const { return axes_[static_cast<size_t>(id)]; }
  /// The first node that mixes what `id` is computed from, or null.
  const ir::Node* mixing(ir::ValueId id) const {
    const auto found = mixed_.find(id);
    return found == mixed_.end() ? nullptr : found->second;
  }

private:
  void visit(const ir::Node& node) {
    std::optional<ir::ValueId> count;
    std::vector<std::optional<size_t>> axes;
    const ir::Node* mixes = nullptr;
    for (const ir::ValueId input : node.inputs) {
      axes.emplace_back();
      if (input == ir::kAbsent) continue;
      if (const ir::Node* found = mixing(input)) mixes = found;
      const std::optional<DataAxis>& known = axis(input);
      if (!known) continue;
      if (count && *count != known->count) mixes = &node;
      count = known->count;
      axes.back() = known->axis;
    }
    const std::vector<std::optional<size_t>> own = ops::data_axes(node);
    for (size_t i = 0; i < own.size() && !count && mixes == nullptr; ++i) {
      if (own[i])
        axes_[static_cast<size_t>(node.outputs[i])] = DataAxis{*own[i], counts_.of(node.outputs.back())};
    }
    if (!own.empty() && count) mixes = &node;
    // Filled behind its count, a value is as large as its shape.
    if (node.op == "fill_behind" && mixes == nullptr) return;
    if (mixes == nullptr && count) mixes = follow(node, axes, *count) ? nullptr : &node;
    if (mixes == nullptr) return;
    for (const ir::ValueId output : node.outputs) mixed_[output] = mixes;
  }

  bool follow(const ir::Node& node, const std::vector<std::optional<size_t>>& axes, ir::ValueId count) {
    const ir::OpDef& def = graph_.ops().get(node.op);
    std::vector<std::optional<size_t>> result;
    if (def.is_view) {
      const Shape& to = graph_.value(node.outputs[0]).type.shape;
      result = {reshaped_axis(graph_.value(node.inputs[0]).type.shape, *axes[0], to)};
      if (!result[0]) return false;
    } else if (ops::is_host_step(def)) {
      result = {ops::element_axis(node, axes)};
      if (!result[0]) return false;
    } else {
      const auto found = NodeAxes(graph_, node, axes).run();
      if (!found) return false;
      result = *found;
    }
    for (size_t i = 0; i < result.size(); ++i) {
      if (result[i]) axes_[static_cast<size_t>(node.outputs[i])] = DataAxis{*result[i], count};
    }
    return true;
  }

  const ir::Graph& graph_;
  CountNumbers counts_;
  std::vector<std::optional<DataAxis>> axes_;  ///< by value
  std::map<ir::ValueId, const ir::Node*> mixed_;
};

/// Whether any result has an extent that depends on data. Its count is a further output.
bool has_counts(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const ir::Node& node) {
    return node.outputs.size() > 1 && !ops::data_axes(node).empty();
  });
}

}  // namespace

DataShape data_shape(const ir::Graph& graph, ir::ValueId value) {
  if (!has_data_extent(graph, value)) return {};
  const Tracker tracker(graph);
  if (tracker.mixing(value) != nullptr) return {false, std::nullopt};
  const std::optional<DataAxis>& axis = tracker.axis(value);
  return {true, axis ? std::optional(DataExtent{axis->axis, axis->count}) : std::nullopt};
}

bool same_count(const ir::Graph& graph, ir::ValueId a, ir::ValueId b) {
  const CountNumbers counts(graph);
  return counts.of(a) == counts.of(b);
}

bool has_data_extent(const ir::Graph& graph, ir::ValueId value) {
  // Most graphs have none, and large ones ask for each node.
  if (!has_counts(graph)) return false;
  for (const ir::ValueId id : ancestors_of(graph, value)) {
    const ir::NodeId producer = graph.value(id).producer;
    if (producer != ir::kAbsent && !ops::data_axes(graph.node(producer)).empty()) return true;
  }
  return false;
}

std::optional<MixedExtent> trim_outputs(ir::Graph& graph) {
  if (!has_counts(graph)) return std::nullopt;
  const Tracker tracker(graph);
  std::vector<ir::ValueId> outputs = graph.outputs();
  std::vector<std::pair<size_t, DataAxis>> trimmed;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (const ir::Node* node = tracker.mixing(outputs[i])) {
      MixedExtent mixed{node->origins.empty() ? node->op : node->origins[0], {}};
      for (const ir::ValueId id : ancestors_of(graph, node->outputs[0])) {
        const ir::Value& value = graph.value(id);
        if (value.producer == ir::kAbsent && !value.constant) mixed.inputs.push_back(value.name);
      }
      return mixed;
    }
    if (tracker.axis(outputs[i])) trimmed.emplace_back(i, *tracker.axis(outputs[i]));
  }
  for (const auto& [at, axis] : trimmed) {
    const std::string name = graph.value(outputs[at]).name;
    const std::vector<std::string> origins = graph.node(graph.value(outputs[at]).producer).origins;
    graph.rename_value(outputs[at], graph.unique_name(name + ".untrimmed"));
    outputs[at] = graph.add_node("trim", {outputs[at], axis.count},
                                 {{"axis", static_cast<int64_t>(axis.axis)}}, origins, {name})[0];
  }
  graph.set_outputs(std::move(outputs));
  return std::nullopt;
}

}  // namespace tensormill::frontend::onnx
