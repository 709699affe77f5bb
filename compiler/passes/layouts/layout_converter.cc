#include "compiler/passes/layouts/layout_converter.h"

#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ops/map_layout.h"
#include "compiler/ops/windows/blocked.h"

namespace tensormill::passes {

namespace {

std::string name_of(const ir::Graph& graph, const ir::Node& node) {
  std::string name;
  for (const std::string& origin : node.origins) name += (name.empty() ? "" : ", ") + origin;
  return name.empty() ? graph.value(node.outputs[0]).name : name;
}

}  // namespace

ir::Graph LayoutConverter::run(LayoutLog& log) {
  for (const ir::Node& node : graph_.nodes()) visit(node);
  for (const ir::ValueId output : graph_.outputs()) make_plain(output);
  for (const std::string& op : desired_.ops) {
    if (met_[op] == 0 && !(is_convolution(op) && log_.converted > 0))
      log_.stayed.push_back({op, op, "passes before have made other operators of it"});
  }
  log = std::move(log_);
  return patch_.apply();
}

ir::Graph LayoutConverter::without_turned_maps(const ir::Graph& graph) {
  const auto transposes = [](const ir::Graph& each) {
    return std::count_if(each.nodes().begin(), each.nodes().end(),
                         [](const ir::Node& node) { return node.op == "transpose"; });
  };
  if (transposes(graph) == 0) return graph;
  LayoutLog ignored;
  const DesiredLayout first;
  ir::Graph made = LayoutConverter(graph, first, true).run(ignored);
  return transposes(made) < transposes(graph) ? made : graph;
}

bool LayoutConverter::takes(const Axes& order) const {
  // Rows of tokens are no maps: products read them as they are.
  constexpr size_t kLeastRank = 4;
  return !is_frugal_ || is_own(order) ||
         (order.size() >= kLeastRank && order == ops::first_from_last(order.size()));
}

bool LayoutConverter::takes(ir::ValueId input, const Axes& order) const {
  if (!is_frugal_ || input == ir::kAbsent || graph_.value(input).constant) return true;
  const MapForm* from = form(input);
  if (from != nullptr && from->order == order) return true;
  const ir::SymShape own = shape(input);
  if (own.size() > order.size()) return false;
  ir::SymShape whole(order.size() - own.size(), 1);
  whole.insert(whole.end(), own.begin(), own.end());
  return moves_nothing(whole, order);
}

void LayoutConverter::visit(const ir::Node& node) {
  const bool asked = desired_.asks_for(node);
  if (asked) ++met_[node.op];
  const bool reads_forms = std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [&](ir::ValueId input) { return form(input) != nullptr; });
  if (node.op == "transpose") return follow_transpose(node);
  const bool laid_out = has_layout(node.op);
  Outcome reason;
  if (laid_out && shape(node.inputs[0]).size() < 3) {
    reason = "its operand has no dimensions beside the channels";
  } else if (laid_out && !asked && (is_convolution(node.op) || !reads_desired(node))) {
    for (const ir::ValueId input : node.inputs) make_plain(input);
    return;
  } else if (laid_out) {
    reason = convert(node);
  } else if (reads_forms) {
    reason = follow(node);
  } else if (asked && !desired_.ops.empty()) {
    reason = "none of its operands is in " + desired_.name();
  } else {
    return;
  }
  if (reason.empty()) {
    ++log_.converted;
    return;
  }
  for (const ir::ValueId input : node.inputs) make_plain(input);
  if (asked) stay(node, reason);
}

void LayoutConverter::stay(const ir::Node& node, const std::string& reason) {
  log_.stayed.push_back({name_of(graph_, node), node.op, reason});
}

LayoutConverter::Axes LayoutConverter::desired_order(size_t rank) const {
  if (desired_.layout == MapLayout::kChannelsFirst) return own_order(rank);
  return inverse_of(ops::first_from_last(rank));
}

bool LayoutConverter::is_desired(const MapForm& form) const {
  return form.order.size() > 2 && form.order == desired_order(form.order.size());
}

bool LayoutConverter::reads_desired(const ir::Node& node) const {
  const MapForm* map = form(node.inputs[0]);
  return map != nullptr && is_desired(*map);
}

LayoutConverter::Outcome LayoutConverter::convert(const ir::Node& node) {
  const bool last = desired_.layout == MapLayout::kChannelsLast;
  if (last && !ops::is_channels_last(node.attrs)) return convert_to_last(node);
  if (!last && ops::is_channels_last(node.attrs)) return "the model has it with its channels last";
  for (const ir::ValueId input : node.inputs) make_plain(input);
  for (const ir::ValueId output : node.outputs) set_form(output, output, own_order(shape(output).size()));
  return "";
}

LayoutConverter::Outcome LayoutConverter::convert_to_last(const ir::Node& node) {
  const size_t rank = shape(node.inputs[0]).size();
  std::vector<ir::ValueId> inputs = node.inputs;
  if (is_convolution(node.op)) {
    if (!graph_.value(inputs[1]).constant) return "its weights are no constants";
    const auto kind = node.op == "conv_transpose" ? ops::MapWeights::kTransposed : ops::MapWeights::kConv;
    inputs[1] = in_order(inputs[1], inverse_of(ops::weights_from_last(kind, rank)), node.origins);
  }
  const Axes order = desired_order(rank);
  inputs[0] = in_order(inputs[0], order, node.origins);
  for (size_t i = 1; i < inputs.size(); ++i) make_plain(node.inputs[i]);
  ir::Attrs attrs = node.attrs;
  attrs.set(ops::kChannelsLast, int64_t{1});
  return add(node, std::move(inputs), attrs, {order});
}

const MapForm* LayoutConverter::form(ir::ValueId value) const {
  const auto found = forms_.find(value);
  return found == forms_.end() ? nullptr : &found->second;
}

void LayoutConverter::set_form(ir::ValueId value, ir::ValueId tensor, Axes order) {
  if (is_own(order)) {
    plain_[value] = true;
    if (tensor != value) patch_.replace(value, tensor);
  }
  forms_[value] = {tensor, std::move(order)};
}

void LayoutConverter::make_plain(ir::ValueId value) {
  const MapForm* from = form(value);
  if (from == nullptr || plain_[value]) return;
  plain_[value] = true;
  const ir::Node* producer = producer_of(graph_, value);
  const std::vector<std::string> origins =
      producer == nullptr ? std::vector<std::string>() : producer->origins;
  patch_.replace(value, turned(from->tensor, inverse_of(from->order), origins));
}

ir::ValueId LayoutConverter::turned(ir::ValueId tensor, const Axes& order,
                                    const std::vector<std::string>& origins) {
  const ir::SymShape from = patch_.value(tensor).type.shape;
  if (is_own(order)) return tensor;
  const auto [found, is_new] = turned_.emplace(std::pair{tensor, order}, ir::kAbsent);
  if (!is_new) return found->second;
  const std::optional<Tensor>& constant = patch_.value(tensor).constant;
  ir::ValueId made;
  if (constant) {
    Shape shape;
    for (const size_t axis : order) shape.push_back(constant->shape()[axis]);
    made = patch_.add_constant(patch_.value(tensor).name + ".turned", ops::permuted(*constant, order, shape));
  } else if (moves_nothing(from, order)) {
    made = patch_.add_node("reshape", {tensor}, {{"shape", shape_in(from, order)}}, origins)[0];
  } else {
    const std::vector<int64_t> perm(order.begin(), order.end());
    made = patch_.add_node("transpose", {tensor}, {{"perm", perm}}, origins)[0];
  }
  turned_[{tensor, order}] = made;
  return made;
}

ir::ValueId LayoutConverter::in_order(ir::ValueId value, const Axes& order,
                                      const std::vector<std::string>& origins) {
  const MapForm* from = form(value);
  if (from == nullptr) return turned(value, order, origins);
  // From where the value's axes stand in its tensor to where they are wanted.
  const Axes place = inverse_of(from->order);
  Axes own;
  for (const size_t axis : order) own.push_back(place[axis]);
  return turned(from->tensor, own, origins);
}

LayoutConverter::Outcome LayoutConverter::add(const ir::Node& node, std::vector<ir::ValueId> inputs,
                                              const ir::Attrs& attrs, const std::vector<Axes>& orders) {
  const std::vector<ir::ValueId> made = patch_.add_node(node.op, std::move(inputs), attrs, node.origins);
  for (size_t i = 0; i < made.size(); ++i) {
    if (!takes(orders[i])) return "its result is no map";
    if (!ir::same(patch_.value(made[i]).type.shape, shape_in(shape(node.outputs[i]), orders[i])))
      return "its extents are other ones with the axes in that order";
  }
  for (size_t i = 0; i < made.size(); ++i) set_form(node.outputs[i], made[i], orders[i]);
  return "";
}

}  // namespace tensormill::passes
