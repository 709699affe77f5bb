// A value of heads is followed to where its elements stand: of each axis of the tensors on the way it is
// known what runs along it, and from which index on.
#include "compiler/passes/fusion/head_source.h"

#include <cmath>

#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/match.h"

namespace tensormill::passes {

namespace {

/// An axis of a tensor: index `first` where nothing runs along it, else the first of what does.
struct Along {
  HeadAxis axis = HeadAxis::kNone;
  int64_t first = 0;
};

class HeadTracer {
public:
  HeadTracer(const ir::Graph& graph, ir::ValueId value, const HeadAxes& order)
      : graph_(graph), value_(value) {
    const ir::SymShape& shape = type(value).shape;
    for (size_t i = 0; i < order.size(); ++i) {
      extents_[static_cast<size_t>(order[i])] = shape[i];
      axes_.push_back({ops::is_one(shape[i]) ? HeadAxis::kNone : order[i], 0});
    }
  }

  std::optional<HeadSource> run() {
    const ir::SymInt heads = extent(HeadAxis::kHead), width = extent(HeadAxis::kColumn);
    if (!heads.is_constant() || !width.is_constant()) return std::nullopt;
    found_.heads = heads;
    found_.width = width;
    while (const ir::Node* node = producer_of(graph_, value_)) {
      if (node->op == "reshape" && take_columns(*node)) return cut();
      if (!step(*node)) return std::nullopt;
    }
    return std::nullopt;
  }

private:
  const ir::ValueType& type(ir::ValueId id) const { return graph_.value(id).type; }
  const ir::SymInt& extent(HeadAxis axis) const { return extents_[static_cast<size_t>(axis)]; }

  /// From the node's result to its operand.
  bool step(const ir::Node& node) {
    const ir::ValueId from = node.inputs[0];
    if (const std::optional<Times> times = match_times(graph_, value_)) {
      found_.scale *= times->by;
      value_ = times->x;
      return true;
    }
    bool is_move = false;
    if (node.op == "cast") is_move = narrow_of(graph_, value_) == from;
    if (node.op == "transpose") is_move = through_transpose(node);
    if (node.op == "gather") is_move = through_place(node);
    if (node.op == "split") is_move = through_split(node);
    if (node.op == "slice") is_move = through_slice(node);
    if (node.op == "reshape") is_move = through_ones(node);
    if (is_move) value_ = from;
    return is_move;
  }

  bool through_transpose(const ir::Node& node) {
    const std::vector<int64_t> perm = permutation_of(graph_, node);
    std::vector<Along> before(axes_.size());
    for (size_t i = 0; i < axes_.size(); ++i) before[static_cast<size_t>(perm[i])] = axes_[i];
    axes_ = std::move(before);
    return true;
  }

  size_t axis_along(const ir::Node& node) const {
    return axis_of(node, 0, type(node.inputs[0]).shape.size());
  }

  /// One place of an axis, which the result has not, or with one element.
  bool through_place(const ir::Node& node) {
    const std::optional<Tensor>& indices = graph_.value(node.inputs[1]).constant;
    if (!indices || indices->num_elements() != 1 || indices->shape().size() > 1) return false;
    const size_t axis = axis_along(node);
    const ir::SymInt& all = type(node.inputs[0]).shape[axis];
    int64_t place = indices->element_as_int(0);
    if (place < 0 && !all.is_constant()) return false;
    if (place < 0) place += all.hint();
    // The kernel reports what is not there.
    if (place < 0 || !ir::is_proven(ir::Relation::kLess, place, all)) return false;
    const Along at{HeadAxis::kNone, place};
    if (indices->shape().empty()) {
      axes_.insert(axes_.begin() + static_cast<std::ptrdiff_t>(axis), at);
    } else {
      axes_[axis] = at;
    }
    return true;
  }

  bool through_split(const ir::Node& node) {
    const ir::SymShape sizes = node.attrs.sym_ints_of("sizes");
    if (!sizes.is_constant()) return false;
    for (size_t i = 0; node.outputs[i] != value_; ++i) axes_[axis_along(node)].first += sizes[i].hint();
    return true;
  }

  bool through_slice(const ir::Node& node) {
    const ir::SymShape starts = node.attrs.sym_ints_of("starts");
    if (!starts.is_constant()) return false;
    if (node.attrs.has("steps")) {
      for (const int64_t step : node.attrs.ints_of("steps")) {
        if (step != 1) return false;
      }
    }
    for (size_t d = 0; d < axes_.size(); ++d) axes_[d].first += starts[d].hint();
    return true;
  }

  /// A reshape that only puts in or leaves out axes of one element.
  bool through_ones(const ir::Node& node) {
    const ir::SymShape &from = type(node.inputs[0]).shape, &to = type(node.outputs[0]).shape;
    std::vector<Along> before;
    size_t at = 0;
    for (const ir::SymInt& extent : from) {
      while (at < to.size() && !are_equal(extent, to[at]) && ops::is_one(to[at]) && !ops::is_one(extent))
        ++at;
      if (at < to.size() && are_equal(extent, to[at])) {
        before.push_back(axes_[at++]);
      } else if (ops::is_one(extent)) {
        before.emplace_back();
      } else {
        return false;
      }
    }
    for (; at < to.size(); ++at) {
      if (!ops::is_one(to[at])) return false;
    }
    axes_ = std::move(before);
    return true;
  }

  /// The reshape of a [N,S,..] tensor that cuts its columns; false for any other.
  bool take_columns(const ir::Node& node) {
    const ir::SymShape &from = type(node.inputs[0]).shape, &to = type(node.outputs[0]).shape;
    if (from.size() != 3 || to.size() < 4 || !are_equal(from[0], to[0]) || !are_equal(from[1], to[1]))
      return false;
    for (const auto& [d, axis] : {std::pair(size_t{0}, HeadAxis::kBatch), {size_t{1}, HeadAxis::kRow}}) {
      const Along& along = axes_[d];
      const bool is_own = along.axis == axis || along.axis == HeadAxis::kNone;
      if (!is_own || along.first != 0 || !are_equal(to[d], extent(axis))) return false;
    }
    int64_t stride = 1, offset = 0;
    bool has_heads = found_.heads == 1, has_columns = found_.width == 1;
    for (size_t d = to.size(); d-- > 2; stride *= to[d].hint()) {
      const HeadAxis axis = axes_[d].axis;
      if (!to[d].is_constant() || axis == HeadAxis::kBatch || axis == HeadAxis::kRow) return false;
      if (axis == HeadAxis::kHead && stride != found_.width) return false;
      if (axis == HeadAxis::kColumn && stride != 1) return false;
      has_heads = has_heads || axis == HeadAxis::kHead;
      has_columns = has_columns || axis == HeadAxis::kColumn;
      offset += axes_[d].first * stride;
    }
    if (!has_heads || !has_columns) return false;
    found_.offset = offset;
    found_.value = node.inputs[0];
    return true;
  }

  /// The source where it is itself a part of the columns of another tensor.
  HeadSource cut() const {
    HeadSource source = found_;
    while (const ir::Node* split = match(graph_, source.value, "split")) {
      const ir::SymShape sizes = split->attrs.sym_ints_of("sizes");
      if (axis_along(*split) != 2 || !sizes.is_constant()) break;
      for (size_t i = 0; split->outputs[i] != source.value; ++i) source.offset += sizes[i].hint();
      source.value = split->inputs[0];
    }
    return source;
  }

  const ir::Graph& graph_;
  ir::ValueId value_;
  std::vector<Along> axes_;            ///< of value_
  std::array<ir::SymInt, 4> extents_;  ///< by HeadAxis
  HeadSource found_;
};

}  // namespace

std::optional<HeadSource> head_source(const ir::Graph& graph, ir::ValueId value, const HeadAxes& order) {
  if (graph.value(value).type.shape.size() != order.size()) return std::nullopt;
  return HeadTracer(graph, value, order).run();
}

std::optional<Times> match_times(const ir::Graph& graph, ir::ValueId value) {
  const ir::Node* node = producer_of(graph, value);
  if (node == nullptr || (node->op != "mul" && node->op != "div")) return std::nullopt;
  const bool divides = node->op == "div";
  for (const size_t side : {1, 0}) {
    const std::optional<double> scalar = scalar_of(graph, node->inputs[side]);
    const ir::ValueId x = node->inputs[1 - side];
    if (!scalar || !have_same_type(graph, x, value) || (divides && side == 0)) continue;
    const double by = divides ? 1 / *scalar : *scalar;
    // A quotient by what has no reciprocal in float32 is no product.
    if (divides && !std::isnormal(static_cast<float>(by))) return std::nullopt;
    return Times{x, by};
  }
  return std::nullopt;
}

ir::ValueId narrow_of(const ir::Graph& graph, ir::ValueId value) {
  const ir::Node* cast = match(graph, value, "cast");
  if (cast == nullptr) return value;
  const DType from = graph.value(cast->inputs[0]).type.dtype, to = graph.value(value).type.dtype;
  return is_float(from) && dtype_bytes(from) < dtype_bytes(to) ? cast->inputs[0] : value;
}

}  // namespace tensormill::passes
