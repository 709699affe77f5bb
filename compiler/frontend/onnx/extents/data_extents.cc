#include "compiler/frontend/onnx/extents/data_extents.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "compiler/ir/branches.h"
#include "compiler/ir/loops.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/run_dims.h"
#include "compiler/ops/steps/host_steps.h"
#include "compiler/te/simplify.h"
#include "compiler/te/tensor_expr.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::onnx {

namespace {

using Extents = std::vector<DataExtent>;

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

/// Which tell most nodes of one operator and operands apart: the parts of a list, say.
std::vector<int64_t> integers_of(const ir::Attrs& attrs) {
  std::vector<int64_t> integers;
  for (const auto& [name, attr] : attrs.all()) {
    if (const auto* one = std::get_if<int64_t>(&attr)) integers.push_back(*one);
    const auto* many = std::get_if<std::vector<int64_t>>(&attr);
    if (many != nullptr) integers.insert(integers.end(), many->begin(), many->end());
  }
  return integers;
}

/// What a node reads and makes, as far as its axes go.
struct NodeForm {
  ir::Attrs attrs;
  std::vector<ir::ValueType> inputs, outputs;  ///< unspecified where absent
};

bool is_empty(const ir::ValueType& type) { return num_elements(type.shape) == 0; }

void give_elements(ir::SymShape& shape) {
  constexpr int64_t kFew = 2;
  for (ir::SymInt& extent : shape) {
    if (extent.is_constant() && extent.hint() == 0) extent = kFew;
  }
}

/// Of a node that reads or makes no elements: with a few along each axis of none, as what computes nothing
/// says nothing of the other axes. Nothing where it does not take those.
std::optional<NodeForm> with_elements(const ir::Graph& graph, const ir::Node& node, NodeForm form) {
  if (form.attrs.has("shape")) {
    ir::SymShape shape = form.attrs.sym_ints_of("shape");
    give_elements(shape);
    form.attrs.set("shape", shape);
  }
  ir::InferContext context{form.attrs, {}};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    give_elements(form.inputs[i].shape);
    context.inputs.push_back(node.inputs[i] == ir::kAbsent ? nullptr : &form.inputs[i]);
  }
  try {
    std::vector<ir::ValueType> made = graph.ops().get(node.op).infer(context);
    for (size_t i = 0; i < made.size(); ++i) {
      if (is_empty(made[i]) || made[i].shape.size() != form.outputs[i].shape.size()) return std::nullopt;
    }
    form.outputs = std::move(made);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidModel) throw;
    return std::nullopt;
  }
  return form;
}

std::optional<NodeForm> form_of(const ir::Graph& graph, const ir::Node& node) {
  NodeForm form{node.attrs, {}, {}};
  for (const ir::ValueId input : node.inputs)
    form.inputs.push_back(input == ir::kAbsent ? ir::ValueType{} : graph.value(input).type);
  for (const ir::ValueId output : node.outputs) form.outputs.push_back(graph.value(output).type);
  const bool has_elements = std::none_of(form.inputs.begin(), form.inputs.end(), is_empty) &&
                            std::none_of(form.outputs.begin(), form.outputs.end(), is_empty);
  return has_elements ? form : with_elements(graph, node, std::move(form));
}

/// Which axes of each output of a node are the data axes of what it reads.
class NodeAxes {
public:
  /// `extents`: of the node's inputs.
  NodeAxes(const ir::Graph& graph, const CountNumbers& counts, const ir::Node& node, const NodeForm& form,
           const std::vector<Extents>& extents)
      : counts_(counts) {
    ir::ComputeContext context{form.attrs, {}, form.inputs, form.outputs, node.op};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == ir::kAbsent) {
        context.inputs.push_back(nullptr);
        continue;
      }
      const ir::ValueType& type = form.inputs[i];
      program_.inputs.push_back(te::placeholder("p" + std::to_string(i), type.dtype, type.shape));
      context.inputs.push_back(program_.inputs.back());
      if (!extents[i].empty()) extents_[program_.inputs.back().get()] = extents[i];
    }
    program_.outputs = graph.ops().get(node.op).compute(context);
  }

  /// By output; nothing where elements are mixed.
  std::optional<std::vector<Extents>> run() {
    for (const te::Tensor& stage : te::stages_of(program_)) {
      if (!visit(*stage)) return std::nullopt;
    }
    std::vector<Extents> result;
    for (const te::Tensor& output : program_.outputs) {
      const auto found = extents_.find(output.get());
      result.push_back(found == extents_.end() ? Extents{} : found->second);
    }
    return result;
  }

private:
  /// The counts are the first ones of those that are alike.
  bool visit(const te::TensorNode& stage) {
    te::BoundsContext context;
    for (const te::Axis& axis : stage.axes) context.bind_extent(axis.var, te::Expr(0), axis.extent);
    if (stage.reduction) {
      for (const te::Axis& axis : stage.reduction->axes)
        context.bind_extent(axis.var, te::Expr(0), axis.extent);
    }
    bool whole = true;
    std::map<size_t, ir::ValueId> found;
    const auto read = [&](const te::Expr& expr) {
      if (expr->op != te::ExprOp::kRead) return;
      const auto source = extents_.find(expr->tensor.get());
      if (source == extents_.end()) return;
      for (const DataExtent& extent : source->second) {
        const std::optional<size_t> own =
            axis_at(stage, expr->args[extent.axis], expr->tensor->shape[extent.axis], context);
        whole = whole && own;
        if (!whole) return;
        const ir::ValueId count = found.emplace(*own, extent.count).first->second;
        whole = counts_.of(count) == counts_.of(extent.count);
      }
    };
    for (const te::Expr& body : stage.body) te::for_each_expr(body, read);
    if (stage.reduction) {
      for (const te::Expr& source : stage.reduction->source) te::for_each_expr(source, read);
    }
    for (const auto& [axis, count] : found) extents_[&stage].push_back({axis, count});
    return whole;
  }

  /// The axis of the stage whose index is `index`.
  static std::optional<size_t> axis_at(const te::TensorNode& stage, const te::Expr& index,
                                       const te::Expr& extent, const te::BoundsContext& context) {
    const auto find = [&](const auto& is_own) -> std::optional<size_t> {
      for (size_t i = 0; i < stage.axes.size(); ++i) {
        if (te::equal(stage.axes[i].extent, extent) && is_own(te::Expr(stage.axes[i].var))) return i;
      }
      return std::nullopt;
    };
    // Of axes of extent 1 any may be shown to be the one: first the one that is written there.
    if (const auto written = find([&](const te::Expr& own) { return te::equal(index, own); })) return written;
    return find([&](const te::Expr& own) { return context.proves(index == own); });
  }

  const CountNumbers& counts_;
  te::Program program_;
  std::map<const te::TensorNode*, Extents> extents_;
};

}  // namespace

std::optional<size_t> reshaped_axis(const ir::SymShape& from, size_t axis, const ir::SymShape& to) {
  ir::SymInt before = 1, passed = 1;
  for (size_t d = 0; d < axis; ++d) before *= from[d];
  for (size_t d = 0; d < to.size(); ++d) {
    if (same(passed, before) && same(to[d], from[axis])) return d;
    passed *= to[d];
  }
  return std::nullopt;
}

const DataExtent* DataShape::along(int64_t axis) const {
  const auto found = std::find_if(extents.begin(), extents.end(), [&](const DataExtent& extent) {
    return static_cast<int64_t>(extent.axis) == axis;
  });
  return found == extents.end() ? nullptr : &*found;
}

bool CountNumbers::is_number(ir::ValueId id) const {
  const ir::ValueType& type = graph_.value(id).type;
  return !is_float(type.dtype) && is_proven(ir::Relation::kEqual, num_elements(type.shape), 1);
}

void CountNumbers::add_value(ir::ValueId id) {
  same_.push_back(id);
  const ir::Value& value = graph_.value(id);
  if (!value.known || value.known.is_symbolic() || !is_number(id)) return;
  const std::tuple key(value.type.dtype, value.type.shape, value.known->element_as_int(0));
  set(id, known_.emplace(key, id).first->second);
}

void CountNumbers::add_node(ir::NodeId id) {
  const ir::Node& node = graph_.node(id);
  const ir::ValueId count = node.outputs.back();
  const std::vector<std::optional<size_t>> axes = ops::data_axes(node);
  if (!axes.empty()) {
    for (size_t i = 0; i < axes.size() && node.op != "take_first"; ++i) {
      const ir::SymShape& shape = graph_.value(node.outputs[i]).type.shape;
      if (axes[i] && shape[*axes[i]].is_constant()) most_[count] = shape[*axes[i]].hint();
    }
    if (node.op == "take_first") add_taken(node, *axes[0]);
    return;
  }
  if (node.outputs.size() != 1 || !is_number(count) || of(count) != count) return;
  // A run in which it is another number than what is checked fails.
  if (node.op == "require") return set(count, of(node.inputs[0]));
  std::vector<ir::ValueId> inputs;
  for (const ir::ValueId input : node.inputs) inputs.push_back(of(input));
  std::vector<ir::NodeId>& alike = seen_[{node.op, std::move(inputs), integers_of(node.attrs)}];
  for (const ir::NodeId first : alike) {
    const ir::ValueId result = graph_.node(first).outputs[0];
    if (graph_.node(first).attrs == node.attrs && graph_.value(result).type == graph_.value(count).type)
      return set(count, of(result));
  }
  alike.push_back(id);
}

/// The count is n within [0, extent]: n itself, where n is the count of no more than that.
void CountNumbers::add_taken(const ir::Node& node, size_t axis) {
  const ir::ValueId n = of(node.inputs[1]), count = node.outputs[1];
  const ir::SymInt extent = graph_.value(node.outputs[0]).type.shape[axis];
  // n is no more than what bounds it.
  const auto most = most_.find(n);
  if (most != most_.end() && is_proven(ir::Relation::kLessEqual, most->second, extent)) return set(count, n);
  const auto [first, is_new] = taken_.emplace(std::pair(n, extent.expr()), count);
  if (!is_new) set(count, first->second);
  most_[first->second] = extent;
}

DataExtents::DataExtents(const ir::Graph& graph) : graph_(graph), counts_(graph) {
  // Of what a run binds the results are as long as there are of them.
  for (const ir::Node& node : graph.nodes()) {
    const ir::NodeId counted =
        ir::has_effect(node) ? graph.value(node.inputs[0]).producer : static_cast<ir::NodeId>(ir::kAbsent);
    if (counted != ir::kAbsent && graph.node(counted).outputs.back() == node.inputs[0])
      exact_.insert(graph.node(counted).outputs.front());
  }
}

void DataExtents::catch_up() {
  for (size_t id = extents_.size(); id < graph_.values().size(); ++id) {
    counts_.add_value(static_cast<ir::ValueId>(id));
    extents_.emplace_back();
    mixing_.push_back(ir::kAbsent);
    depends_.push_back(false);
    const ir::Value& value = graph_.value(static_cast<ir::ValueId>(id));
    reads_input_.push_back(value.producer == ir::kAbsent && !value.constant && !value.known);
  }
  for (; nodes_ < graph_.nodes().size(); ++nodes_) {
    counts_.add_node(static_cast<ir::NodeId>(nodes_));
    note_inputs(graph_.node(static_cast<ir::NodeId>(nodes_)));
    visit(static_cast<ir::NodeId>(nodes_));
  }
}

void DataExtents::note_inputs(const ir::Node& node) {
  const bool reads = node.op == ir::kLoopBegin ||
                     std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId input) {
                       return input != ir::kAbsent && reads_input_[static_cast<size_t>(input)];
                     });
  for (const ir::ValueId output : node.outputs)
    reads_input_[static_cast<size_t>(output)] = reads && !graph_.value(output).known;
}

std::vector<Extents> DataExtents::operands_of(const ir::Node& node) const {
  std::vector<Extents> operands;
  for (const ir::ValueId input : node.inputs)
    operands.push_back(input == ir::kAbsent ? Extents{} : extents_[static_cast<size_t>(input)]);
  return operands;
}

void DataExtents::visit(ir::NodeId id) {
  const ir::Node& node = graph_.node(id);
  if (exact_.count(node.outputs.front()) != 0) return;
  // As large as the numbers that say what is there.
  if (node.op == "take_growing") return;
  bool depends = !ops::data_axes(node).empty();
  ir::NodeId mixes = ir::kAbsent;
  for (const ir::ValueId input : node.inputs) {
    if (input == ir::kAbsent) continue;
    depends = depends || depends_[static_cast<size_t>(input)];
    if (mixing_[static_cast<size_t>(input)] != ir::kAbsent) mixes = mixing_[static_cast<size_t>(input)];
  }
  if (!depends) return;
  std::optional<std::vector<Extents>> results;
  if (mixes == ir::kAbsent) {
    results = results_of(node);
    if (!results) mixes = id;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto output = static_cast<size_t>(node.outputs[i]);
    depends_[output] = true;
    mixing_[output] = mixes;
    if (results && i < results->size()) extents_[output] = std::move((*results)[i]);
  }
}

/// By output of a node whose operands can be told; nothing where it mixes elements.
std::optional<std::vector<Extents>> DataExtents::results_of(const ir::Node& node) const {
  const std::vector<Extents> operands = operands_of(node);
  const std::vector<std::optional<size_t>> own = ops::data_axes(node);
  const bool is_data_dependent =
      std::any_of(operands.begin(), operands.end(), [](const Extents& extents) { return !extents.empty(); });
  // What is filled behind a count, or cut along an axis, is as before along its other axes.
  const bool is_cut = node.op == "take_first" || node.op == "compress";
  if (node.op == "fill_behind" || is_cut) {
    const auto axis = static_cast<size_t>(node.attrs.int_of("axis"));
    Extents others = operands[0];
    std::erase_if(others, [&](const DataExtent& extent) { return extent.axis == axis; });
    if (node.op == "fill_behind") return std::vector<Extents>{others};
    if (others.size() != operands[0].size() || !operands[1].empty()) return std::nullopt;
    const auto behind = std::find_if(others.begin(), others.end(),
                                     [&](const DataExtent& extent) { return extent.axis > axis; });
    others.insert(behind, {axis, node.outputs.back()});
    return std::vector<Extents>{others};
  }
  if (!own.empty()) {
    if (is_data_dependent) return std::nullopt;
    std::vector<Extents> results;
    for (const std::optional<size_t>& axis : own)
      results.push_back(axis ? Extents{{*axis, node.outputs.back()}} : Extents{});
    return results;
  }
  if (!is_data_dependent) return std::vector<Extents>(node.outputs.size());
  if (node.op == ir::kEnterBranch) return std::vector<Extents>{operands[0]};
  if (node.op == ir::kChoose) return chosen(operands[1], operands[2]);
  const ir::OpDef& def = graph_.ops().get(node.op);
  if (!def.is_view && !ops::is_host_step(def)) {
    const std::optional<NodeForm> form = form_of(graph_, node);
    return form ? NodeAxes(graph_, counts_, node, *form, operands).run() : std::nullopt;
  }
  const std::optional<Extents> result = def.is_view ? reshaped(node) : of_host_step(node);
  if (!result) return std::nullopt;
  return std::vector<Extents>(node.outputs.size(), *result);
}

/// What either is as long as.
std::optional<std::vector<Extents>> DataExtents::chosen(const Extents& yes, const Extents& no) const {
  const bool are_alike =
      std::equal(yes.begin(), yes.end(), no.begin(), no.end(), [&](const DataExtent& a, const DataExtent& b) {
        return a.axis == b.axis && counts_.of(a.count) == counts_.of(b.count);
      });
  return are_alike ? std::optional(std::vector<Extents>{yes}) : std::nullopt;
}

std::optional<Extents> DataExtents::reshaped(const ir::Node& node) const {
  const ir::SymShape &from = graph_.value(node.inputs[0]).type.shape,
                     &to = graph_.value(node.outputs[0]).type.shape;
  Extents result;
  for (const DataExtent& extent : extents_[static_cast<size_t>(node.inputs[0])]) {
    const std::optional<size_t> axis = reshaped_axis(from, extent.axis, to);
    if (!axis) return std::nullopt;
    result.push_back({*axis, extent.count});
  }
  return result;
}

/// Host steps say what becomes of one count at a time.
std::optional<Extents> DataExtents::of_host_step(const ir::Node& node) const {
  const std::vector<Extents> operands = operands_of(node);
  std::map<ir::ValueId, std::vector<std::optional<size_t>>> axes;  // by count, by operand
  std::map<ir::ValueId, ir::ValueId> first;                        // of the counts that are alike
  for (size_t i = 0; i < operands.size(); ++i) {
    for (const DataExtent& extent : operands[i]) {
      std::vector<std::optional<size_t>>& own = axes[counts_.of(extent.count)];
      own.resize(operands.size());
      first.emplace(counts_.of(extent.count), extent.count);
      if (own[i]) return std::nullopt;
      own[i] = extent.axis;
    }
  }
  std::map<size_t, ir::ValueId> result;
  for (const auto& [count, by_operand] : axes) {
    const std::optional<size_t> axis = ops::element_axis(node, by_operand);
    if (!axis || !result.emplace(*axis, first.at(count)).second) return std::nullopt;
  }
  Extents extents;
  for (const auto& [axis, count] : result) extents.push_back({axis, count});
  return extents;
}

DataShape DataExtents::shape_of(ir::ValueId value) {
  catch_up();
  if (mixing_[static_cast<size_t>(value)] != ir::kAbsent) return {false, {}};
  return {true, extents_[static_cast<size_t>(value)]};
}

bool DataExtents::may_depend(ir::ValueId value) {
  catch_up();
  return depends_[static_cast<size_t>(value)];
}

bool DataExtents::reads_input(ir::ValueId value) {
  catch_up();
  return reads_input_[static_cast<size_t>(value)];
}

bool DataExtents::same_count(ir::ValueId a, ir::ValueId b) {
  catch_up();
  return counts_.of(a) == counts_.of(b);
}

ir::ValueId DataExtents::first_alike(ir::ValueId count) {
  catch_up();
  return counts_.of(count);
}

ir::NodeId DataExtents::mixing(ir::ValueId value) {
  catch_up();
  return mixing_[static_cast<size_t>(value)];
}

std::optional<MixedExtent> trim_outputs(ir::Graph& graph) {
  DataExtents extents(graph);
  std::vector<ir::ValueId> outputs = graph.outputs();
  std::vector<std::pair<size_t, std::vector<DataExtent>>> trimmed;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const DataShape shape = extents.shape_of(outputs[i]);
    if (shape.extents.empty() && shape.is_known) continue;
    if (!shape.is_known) {
      const ir::Node& node = graph.node(extents.mixing(outputs[i]));
      MixedExtent mixed{node.origins.empty() ? node.op : node.origins[0], {}};
      for (const ir::ValueId id : ancestors_of(graph, node.outputs[0])) {
        const ir::Value& value = graph.value(id);
        if (value.producer == ir::kAbsent && !value.constant) mixed.inputs.push_back(value.name);
      }
      return mixed;
    }
    trimmed.emplace_back(i, shape.extents);
  }
  for (const auto& [at, counted] : trimmed) {
    const std::string name = graph.value(outputs[at]).name;
    const std::vector<std::string> origins = graph.node(graph.value(outputs[at]).producer).origins;
    graph.rename_value(outputs[at], graph.unique_name(name + ".untrimmed"));
    std::vector<ir::ValueId> operands{outputs[at]};
    std::vector<int64_t> axes;
    for (const DataExtent& extent : counted) {
      operands.push_back(extent.count);
      axes.push_back(static_cast<int64_t>(extent.axis));
    }
    outputs[at] = graph.add_node("trim", std::move(operands), {{"axes", axes}}, origins, {name})[0];
  }
  graph.set_outputs(std::move(outputs));
  return std::nullopt;
}

}  // namespace tensormill::frontend::onnx
