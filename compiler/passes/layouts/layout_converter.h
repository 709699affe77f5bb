/// What convert_layout is made of: one walk over the graph that keeps, for each value, a tensor that holds it
/// with its axes in another order. Operators are computed on those tensors; the value itself is made, by a
/// transpose, only where something wants it. Thread-safety: belongs to one thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/patch.h"
#include "compiler/passes/layouts/axis_order.h"
#include "compiler/passes/layouts/desired_layout.h"
#include "compiler/passes/match.h"

namespace tensormill::passes {

/// A value's tensor: axis i of the tensor is axis order[i] of the value.
struct MapForm {
  ir::ValueId tensor = ir::kAbsent;
  AxisOrder order;
};

class LayoutConverter {
public:
  LayoutConverter(const ir::Graph& graph, const DesiredLayout& desired)
      : LayoutConverter(graph, desired, false) {}
  /// Maps whose channels the model has turned to stand last are computed with the channels first where that
  /// takes no transpose more: those between convolutions are removed.
  static ir::Graph without_turned_maps(const ir::Graph& graph);

  ir::Graph run(LayoutLog& log);
  /// Operators without a layout of their own that take their axes in any order.
  static bool is_follower(const ir::OpRegistry& registry, const std::string& op);

private:
  using Axes = AxisOrder;
  /// "" where the node is converted, else why it is not.
  using Outcome = std::string;
  using Rule = Outcome (LayoutConverter::*)(const ir::Node&, const Axes&);

  LayoutConverter(const ir::Graph& graph, const DesiredLayout& desired, bool is_frugal)
      : graph_(graph), desired_(desired), is_frugal_(is_frugal), patch_(graph, "convert_layout") {}

  // ---- layout_converter.cc
  /// Whether values may be held in this order.
  bool takes(const Axes& order) const;
  /// Whether the operand stands in the order beside maps of it, without a transpose where those are not to be
  /// added.
  bool takes(ir::ValueId input, const Axes& order) const;
  void visit(const ir::Node& node);
  void stay(const ir::Node& node, const std::string& reason);
  Outcome convert(const ir::Node& node);
  /// A node with a layout, computed with the channels last.
  Outcome convert_to_last(const ir::Node& node);
  bool is_desired(const MapForm& form) const;
  bool reads_desired(const ir::Node& node) const;
  /// The order of a tensor of the desired layout of a value [N,C,spatial...].
  Axes desired_order(size_t rank) const;

  const MapForm* form(ir::ValueId value) const;
  const ir::SymShape& shape(ir::ValueId value) const { return graph_.value(value).type.shape; }
  /// The node's result is `tensor`; replaces it where the order is the value's own.
  void set_form(ir::ValueId value, ir::ValueId tensor, Axes order);
  /// Readers of the value find it with its own axes.
  void make_plain(ir::ValueId value);
  /// The value's elements with the axes in this order.
  ir::ValueId in_order(ir::ValueId value, const Axes& order, const std::vector<std::string>& origins);
  /// `tensor` with the axes in this order; a reshape where nothing moves.
  ir::ValueId turned(ir::ValueId tensor, const Axes& order, const std::vector<std::string>& origins);
  /// A new node whose outputs hold the node's with the axes in these orders; "" where the types fit.
  Outcome add(const ir::Node& node, std::vector<ir::ValueId> inputs, const ir::Attrs& attrs,
              const std::vector<Axes>& orders);

  // ---- layout_followers.cc
  static const std::map<std::string, Rule>& rules();
  Outcome follow(const ir::Node& node);
  Outcome follow_elementwise(const ir::Node& node, const Axes& order);
  Outcome follow_reduction(const ir::Node& node, const Axes& order);
  Outcome follow_along_axis(const ir::Node& node, const Axes& order);
  Outcome follow_layer_norm(const ir::Node& node, const Axes& order);
  Outcome follow_gather(const ir::Node& node, const Axes& order);
  Outcome follow_by_axes(const ir::Node& node, const Axes& order);
  Outcome follow_pad(const ir::Node& node, const Axes& order);
  Outcome follow_reshape(const ir::Node& node, const Axes& order);
  void follow_transpose(const ir::Node& node);
  /// An operand of an elementwise node as it is read beside tensors of this order.
  ir::ValueId operand(const ir::Node& node, ir::ValueId input, const Axes& order);

  const ir::Graph& graph_;
  const DesiredLayout& desired_;
  bool is_frugal_;  ///< no transposes but those of the model
  ir::Patch patch_;
  LayoutLog log_;
  std::map<ir::ValueId, MapForm> forms_;
  std::map<ir::ValueId, bool> plain_;  ///< values that stand in the graph with their own axes
  std::map<std::pair<ir::ValueId, Axes>, ir::ValueId> turned_;
  std::map<std::string, int64_t> met_;  ///< nodes by operator, of those that are looked up by name
};

}  // namespace tensormill::passes
