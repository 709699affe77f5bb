// Reductions along axes of samples, and what takes all elements of a sample together.
#include <array>
#include <set>

#include "compiler/build/moves/places.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/cntk/node_context.h"

namespace tensormill::frontend::cntk {

namespace {

using build::OpName;
constexpr std::array kReductions = {
    OpName{"LogSum", "reduce_log_sum_exp"}, OpName{"Max", "reduce_max"},
    OpName{"Mean", "reduce_mean"},          OpName{"Min", "reduce_min"},
    OpName{"Prod", "reduce_prod"},          OpName{"Sum", "reduce_sum"},
};

/// The sample's elements beside each other: [N,elements] or [1,elements].
V as_rows(NodeContext& node, const Item& x) {
  const ir::SymInt rows = x.has_batch ? node.shape(x.value)[0] : ir::SymInt(1);
  return Compose(node).reshape(x.value, {rows, num_elements(node.sample(x))});
}

struct Reduced {
  std::vector<int64_t> axes;  ///< of the sample's tensor, in order
  bool is_all = false;
};

/// Attribute axis, or several of axisVec.
Reduced reduced_axes(NodeContext& node, int64_t rank) {
  std::vector<Axis> given = node.axes("axisVec");
  if (given.empty()) {
    const Value* axis = node.function().attributes.find("axis");
    node.skip("axis");
    if (axis == nullptr || axis->as<Axis>() == nullptr) node.invalid("attribute axis is missing");
    given.push_back(*axis->as<Axis>());
  }
  std::set<int64_t> axes;
  Reduced reduced;
  for (const Axis& axis : given) {
    if (axis.index == kAllStaticAxes) {
      reduced.is_all = true;
    } else {
      axes.insert(node.place_of(axis, rank));
    }
  }
  for (int64_t d = 0; reduced.is_all && d < rank; ++d) axes.insert(d);
  reduced.axes.assign(axes.begin(), axes.end());
  return reduced;
}

/// The place of the largest or the smallest element, of equals the first one, as a number of x's type.
V place_of_most(NodeContext& node, const Item& x, const Reduced& reduced, const char* op, bool keeps) {
  Compose c(node);
  ir::SymShape left = node.sample(x);
  V values = x.value;
  int64_t axis = 0;
  if (reduced.axes.size() == left.size()) {
    values = as_rows(node, x);
    axis = 1;
  } else if (reduced.axes.size() == 1) {
    axis = reduced.axes[0] + x.offset();
  } else {
    node.unsupported("axis", "places along several axes are not implemented");
  }
  const V places =
      node.add(op, {values}, {{"axis", axis}, {"keepdims", int64_t{1}}, {"select_last", int64_t{0}}});
  for (auto each = reduced.axes.rbegin(); each != reduced.axes.rend(); ++each) {
    left[static_cast<size_t>(*each)] = 1;
    if (!keeps) left.erase(left.begin() + *each);
  }
  return node.with_sample(x, c.cast(places, node.dtype(x.value)), left);
}

}  // namespace

void convert_reduce_elements(NodeContext& node) {
  Compose c(node);
  const Item x = node.operand(0);
  const std::string name = node.text("reductionOpName");
  const Reduced reduced = reduced_axes(node, node.sample_rank(x));
  const bool keeps = node.flag("reductionKeepDimensions", !reduced.is_all);
  if (name == "Argmax" || name == "Argmin") {
    const char* op = name == "Argmax" ? "arg_max" : "arg_min";
    return node.set_output(place_of_most(node, x, reduced, op, keeps), x.has_batch);
  }
  const OpName* found = build::find_in(kReductions, &OpName::model, name);
  if (found == nullptr) node.unsupported("reductionOpName", "\"" + name + "\" is not implemented");
  std::vector<int64_t> axes;
  for (const int64_t axis : reduced.axes) axes.push_back(axis + x.offset());
  node.set_output(c.reduce(found->graph, x.value, axes, keeps), x.has_batch);
}

// Over all elements of a sample, be they of one axis or more.
void convert_softmax(NodeContext& node) {
  const Item x = node.operand(0);
  const char* op = node.op() == "Softmax" ? "softmax" : "log_softmax";
  const V y = node.add(op, {as_rows(node, x)}, {{"axis", int64_t{1}}});
  node.set_output(node.with_sample(x, y, node.sample(x)), x.has_batch);
}

// A block of CNTK's own, along an axis.
void convert_softmax_block(NodeContext& node) {
  const Item x = node.operand(0);
  const int64_t axis = node.place("axis", node.sample_rank(x)) + x.offset();
  const char* op = node.op() == "Softmax" ? "softmax" : "log_softmax";
  node.set_output(node.add(op, {x.value}, {{"axis", axis}}), x.has_batch);
}

// 1 where the largest element of the sample stands first, else 0.
void convert_hardmax(NodeContext& node) {
  Compose c(node);
  const Item x = node.operand(0);
  const V rows = as_rows(node, x);
  const V places = c.positions(node.shape(rows)[1], 1, 2);
  const V is_most = c.binary("equal", places, c.arg_max(rows, 1, true));
  node.set_output(node.with_sample(x, c.cast(is_most, node.dtype(x.value)), node.sample(x)), x.has_batch);
}

// The cosine of the angle between both samples, 0 of one without a length.
void convert_cos_distance(NodeContext& node) {
  Compose c(node);
  if (node.num_operands() != 2) node.invalid("it has " + std::to_string(node.num_operands()) + " operands");
  const Item x = node.operand(0), y = node.operand(1);
  const V a = as_rows(node, x), b = as_rows(node, y);
  const V product = c.reduce("reduce_sum", c.mul(a, b), {1}, false);
  const auto by_length = [&](V of, V rows) {
    constexpr double kLeastLength = 1e-30;
    const V length = c.reduce("reduce_l2", rows, {1}, false);
    return c.div(of, c.binary("max", length, c.number(length, kLeastLength)));
  };
  const Item& like = x.has_batch ? x : y;
  node.set_output(node.with_sample(like, by_length(by_length(product, a), b), {}), like.has_batch);
}

// The largest elements of the axis that CNTK has first, in order, and their places.
void convert_top_k(NodeContext& node) {
  Compose c(node);
  const Item x = node.operand(0);
  const int64_t rank = node.sample_rank(x);
  if (rank < 1) node.invalid("operand 0 has no axis");
  const int64_t axis = node.place("axis", rank, rank - 1) + x.offset(), k = node.integer("numItems");
  const ir::SymInt extent = node.shape(x.value)[static_cast<size_t>(axis)];
  if (k < 1 || !ir::demand(ir::Relation::kLessEqual, k, extent))
    node.invalid(std::to_string(k) + " items of an axis of " + to_string(extent));
  const V places = build::ordered_places(node, x.value, axis, k, false);
  node.set_output(0, c.gather_elements(x.value, places, axis), x.has_batch);
  node.set_output(1, c.cast(places, node.dtype(x.value)), x.has_batch);
}

}  // namespace tensormill::frontend::cntk
