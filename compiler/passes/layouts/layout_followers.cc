// Operators that compute in any order of axes: they take the order of what they read, their attributes with
// it. A transpose is only another order, a reshape one where the axes that it joins lie side by side.
#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/layouts/layout_converter.h"

namespace tensormill::passes {

namespace {

using Axes = AxisOrder;

/// The order of what is left when these axes are gone.
Axes without(const Axes& order, const Axes& gone) {
  Axes left;
  for (const size_t axis : order) {
    if (std::find(gone.begin(), gone.end(), axis) != gone.end()) continue;
    const auto before = [&](size_t other) { return other < axis; };
    left.push_back(axis - static_cast<size_t>(std::count_if(gone.begin(), gone.end(), before)));
  }
  return left;
}

/// One entry for each axis, by the order: lists of several entries an axis are several such lists.
ir::SymShape arranged(const ir::SymShape& entries, const Axes& order) {
  ir::SymShape made;
  for (size_t first = 0; first < entries.size(); first += order.size()) {
    for (const size_t axis : order) made.push_back(entries[first + axis]);
  }
  return made;
}

bool is_elementwise(const ir::OpRegistry& registry, const std::string& op) {
  const ir::OpDef* def = registry.find(op);
  return def != nullptr && def->pattern == ir::Pattern::kElementwise && !has_layout(op);
}

/// Axes of a reshape's operand that become axes of its result; ones come and go alone.
struct Joined {
  Axes in, out;
};

/// Nothing where the extents are not known to be products of each other.
std::optional<std::vector<Joined>> joined_axes(const ir::SymShape& in, const ir::SymShape& out) {
  std::vector<Joined> groups;
  for (size_t i = 0, j = 0; i < in.size() || j < out.size();) {
    const bool has_in = i < in.size(), has_out = j < out.size();
    if (has_in && has_out && ir::same(in[i], out[j])) {
      groups.push_back({{i++}, {j++}});
    } else if (has_in && ir::same(in[i], 1)) {
      groups.push_back({{i++}, {}});
    } else if (has_out && ir::same(out[j], 1)) {
      groups.push_back({{}, {j++}});
    } else if (!has_in || !has_out) {
      return std::nullopt;
    } else {
      ir::SymInt a = in[i], b = out[j];
      Joined group{{i++}, {j++}};
      while (!ir::same(a, b)) {
        // Which one grows is a guess, which the comparison above decides.
        const bool grows_in = a.hint() < b.hint();
        if (grows_in ? i == in.size() : j == out.size()) return std::nullopt;
        grows_in ? a *= in[i] : b *= out[j];
        grows_in ? group.in.push_back(i++) : group.out.push_back(j++);
      }
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace

const std::map<std::string, LayoutConverter::Rule>& LayoutConverter::rules() {
  static const std::map<std::string, Rule> rows = [] {
    std::map<std::string, Rule> made = {{"layer_norm", &LayoutConverter::follow_layer_norm},
                                        {"gather", &LayoutConverter::follow_gather},
                                        {"pad", &LayoutConverter::follow_pad},
                                        {"reshape", &LayoutConverter::follow_reshape}};
    for (const char* op :
         {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_l1", "reduce_l2",
          "reduce_log_sum", "reduce_log_sum_exp", "reduce_sum_square"})
      made[op] = &LayoutConverter::follow_reduction;
    for (const char* op : {"concat", "split", "softmax", "log_softmax", "cumsum", "cumprod", "arg_max",
                           "arg_min", "arg_top_k", "fill_behind", "gather_elements"})
      made[op] = &LayoutConverter::follow_along_axis;
    for (const char* op : {"slice", "tile", "expand"}) made[op] = &LayoutConverter::follow_by_axes;
    return made;
  }();
  return rows;
}

bool LayoutConverter::is_follower(const ir::OpRegistry& registry, const std::string& op) {
  return op == "transpose" || rules().count(op) != 0 || is_elementwise(registry, op);
}

LayoutConverter::Outcome LayoutConverter::follow(const ir::Node& node) {
  const auto row = rules().find(node.op);
  const bool elementwise = is_elementwise(graph_.ops(), node.op);
  const MapForm* leading = nullptr;
  for (const ir::ValueId input : node.inputs) {
    const MapForm* each = form(input);
    if (each == nullptr || is_own(each->order)) continue;
    if (leading == nullptr || (is_desired(*each) && !is_desired(*leading))) leading = each;
  }
  if (leading == nullptr) {  // all have their own axes, which the layout is
    if (row == rules().end() && !elementwise) return "";
    for (const ir::ValueId output : node.outputs) set_form(output, output, own_order(shape(output).size()));
    return "";
  }
  if (row == rules().end() && !elementwise) return "it takes axes as the model has them";
  const Axes order = leading->order;
  return elementwise ? follow_elementwise(node, order) : (this->*row->second)(node, order);
}

ir::ValueId LayoutConverter::operand(const ir::Node& node, ir::ValueId input, const Axes& order) {
  const ir::SymShape own = shape(input);
  if (own.size() == order.size()) return in_order(input, order, node.origins);
  make_plain(input);
  if (std::all_of(own.begin(), own.end(), [](const ir::SymInt& extent) { return ir::same(extent, 1); }))
    return input;
  ir::SymShape whole(order.size() - own.size(), 1);
  whole.insert(whole.end(), own.begin(), own.end());
  const std::optional<Tensor>& constant = graph_.value(input).constant;
  const ir::ValueId made =
      constant ? patch_.add_constant(graph_.value(input).name + ".whole", constant->reshaped(Shape(whole)))
               : patch_.add_node("reshape", {input}, {{"shape", whole}}, node.origins)[0];
  return turned(made, order, node.origins);
}

LayoutConverter::Outcome LayoutConverter::follow_elementwise(const ir::Node& node, const Axes& order) {
  if (node.outputs.size() != 1 || shape(node.outputs[0]).size() != order.size())
    return "its result has more dimensions than the map that it reads";
  std::vector<ir::ValueId> inputs;
  for (const ir::ValueId input : node.inputs) {
    if (!takes(input, order)) return "an operand has its axes in another order";
  }
  for (const ir::ValueId input : node.inputs)
    inputs.push_back(input == ir::kAbsent ? input : operand(node, input, order));
  return add(node, std::move(inputs), node.attrs, {order});
}

LayoutConverter::Outcome LayoutConverter::follow_reduction(const ir::Node& node, const Axes& order) {
  const Axes place = inverse_of(order);
  ir::Attrs attrs = node.attrs;
  Axes gone;
  if (attrs.has("axes")) {
    std::vector<int64_t> axes;
    for (const int64_t axis : attrs.ints_of("axes")) {
      gone.push_back(static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(order.size()) : axis));
      axes.push_back(static_cast<int64_t>(place[gone.back()]));
    }
    std::sort(axes.begin(), axes.end());
    attrs.set("axes", axes);
  } else {
    gone = order;
  }
  const bool keeps = ops::attr_bool(attrs, "keepdims", true);
  return add(node, {in_order(node.inputs[0], order, node.origins)}, attrs,
             {keeps ? order : without(order, gone)});
}

LayoutConverter::Outcome LayoutConverter::follow_along_axis(const ir::Node& node, const Axes& order) {
  const bool is_pick = node.op == "arg_max" || node.op == "arg_min";
  const bool from_end = node.op == "softmax" || node.op == "log_softmax" || node.op == "arg_top_k";
  const size_t axis = axis_of(node, from_end ? -1 : 0, order.size());
  std::vector<ir::ValueId> inputs;
  for (const ir::ValueId input : node.inputs) {
    // What counts elements has a shape of its own.
    const bool is_map = input != ir::kAbsent && shape(input).size() == order.size();
    if (is_map && !takes(input, order)) return "an operand has its axes in another order";
    if (!is_map && input != ir::kAbsent) make_plain(input);
    inputs.push_back(is_map ? in_order(input, order, node.origins) : input);
  }
  ir::Attrs attrs = node.attrs;
  attrs.set("axis", static_cast<int64_t>(inverse_of(order)[axis]));
  const bool drops = is_pick && !ops::attr_bool(attrs, "keepdims", true);
  const Axes made = drops ? without(order, {axis}) : order;
  return add(node, std::move(inputs), attrs, std::vector<Axes>(node.outputs.size(), made));
}

LayoutConverter::Outcome LayoutConverter::follow_layer_norm(const ir::Node& node, const Axes& order) {
  const size_t first = axis_of(node, -1, order.size());
  for (size_t axis = first; axis < order.size(); ++axis) {
    if (order[axis] != axis) return "the axes that it normalizes do not stand last";
  }
  std::vector<ir::ValueId> inputs = node.inputs;
  inputs[0] = in_order(inputs[0], order, node.origins);
  for (size_t i = 1; i < inputs.size(); ++i) make_plain(inputs[i]);
  return add(node, std::move(inputs), node.attrs, {order});
}

LayoutConverter::Outcome LayoutConverter::follow_gather(const ir::Node& node, const Axes& order) {
  const size_t rank = shape(node.inputs[1]).size();
  if (rank > 1) return "its indices have several dimensions";
  if (shape(node.inputs[0]).size() != order.size()) return "its indices are a map";
  const size_t axis = axis_of(node, 0, order.size());
  make_plain(node.inputs[1]);
  ir::Attrs attrs = node.attrs;
  attrs.set("axis", static_cast<int64_t>(inverse_of(order)[axis]));
  return add(node, {in_order(node.inputs[0], order, node.origins), node.inputs[1]}, attrs,
             {rank == 1 ? order : without(order, {axis})});
}

LayoutConverter::Outcome LayoutConverter::follow_by_axes(const ir::Node& node, const Axes& order) {
  ir::Attrs attrs = node.attrs;
  for (const char* name : {"starts", "extents", "steps", "repeats", "shape"}) {
    if (!attrs.has(name)) continue;
    const ir::SymShape entries = attrs.sym_ints_of(name);
    if (entries.size() != order.size()) return "its result has more dimensions than the map that it reads";
    attrs.set(name, arranged(entries, order));
  }
  return add(node, {in_order(node.inputs[0], order, node.origins)}, attrs, {order});
}

LayoutConverter::Outcome LayoutConverter::follow_pad(const ir::Node& node, const Axes& order) {
  if (shape(node.inputs[0]).size() != order.size()) return "what it pads with is a map";
  std::vector<ir::ValueId> inputs = node.inputs;
  inputs[0] = in_order(inputs[0], order, node.origins);
  for (size_t i = 1; i < inputs.size(); ++i) make_plain(inputs[i]);
  ir::Attrs attrs = node.attrs;
  attrs.set("pads", arranged(attrs.sym_ints_of("pads"), order));
  return add(node, std::move(inputs), attrs, {order});
}

LayoutConverter::Outcome LayoutConverter::follow_reshape(const ir::Node& node, const Axes& order) {
  const auto groups = joined_axes(shape(node.inputs[0]), shape(node.outputs[0]));
  if (!groups) return "its extents are not known to be products of the map's";
  // Where the map has the first axis of a group, it gets the whole group; ones come in behind the group that
  // they follow.
  std::vector<size_t> group_of(order.size());
  for (size_t g = 0; g < groups->size(); ++g) {
    for (const size_t axis : (*groups)[g].in) group_of[axis] = g;
  }
  Axes wanted, made;
  std::vector<bool> is_placed(groups->size());
  const auto place_from = [&](size_t g) {
    for (; g < groups->size() && !is_placed[g]; ++g) {
      is_placed[g] = true;
      wanted.insert(wanted.end(), (*groups)[g].in.begin(), (*groups)[g].in.end());
      made.insert(made.end(), (*groups)[g].out.begin(), (*groups)[g].out.end());
      if (g + 1 < groups->size() && !(*groups)[g + 1].in.empty()) break;
    }
  };
  if (!groups->empty() && groups->front().in.empty()) place_from(0);
  for (const size_t axis : order) place_from(group_of[axis]);
  const ir::ValueId x = in_order(node.inputs[0], wanted, node.origins);
  Axes steps;  // of the map's tensor
  for (const size_t axis : wanted) steps.push_back(inverse_of(order)[axis]);
  const bool moved = !moves_nothing(shape_in(shape(node.inputs[0]), order), steps) &&
                     match(graph_, node.inputs[0], "transpose") == nullptr;
  if (moved && desired_.asks_for(node))
    stay(node, "it joins axes that do not lie side by side in the layout");
  ir::Attrs attrs = node.attrs;
  attrs.set("shape", arranged(shape(node.outputs[0]), made));
  return add(node, {x}, attrs, {made});
}

void LayoutConverter::follow_transpose(const ir::Node& node) {
  const ir::ValueId input = node.inputs[0], output = node.outputs[0];
  const MapForm* from = form(input);
  const std::vector<int64_t> perm = permutation_of(graph_, node);
  Axes target(perm.size());  // where an axis of the operand stands in the result
  for (size_t i = 0; i < perm.size(); ++i) target[static_cast<size_t>(perm[i])] = i;
  Axes order;
  for (const size_t axis : from == nullptr ? own_order(perm.size()) : from->order)
    order.push_back(target[axis]);
  if (from != nullptr && !takes(order)) {
    make_plain(input);
  } else if (from != nullptr) {
    const ir::ValueId tensor = from->tensor;
    set_form(output, tensor, order);
  } else if (order.size() > 2 && !is_own(order) && order == desired_order(order.size())) {
    forms_[output] = {input, order};
    plain_[output] = true;
  }
}

}  // namespace tensormill::passes
