// Layers of several inputs.
#include <algorithm>

#include "compiler/frontend/keras/converters/moves.h"

namespace tensormill::frontend::keras {

namespace {

/// Inputs of other ranks get axes of one element behind the batch, as Keras gives them.
std::vector<V> of_one_rank(LayerContext& context) {
  std::vector<V> inputs;
  int64_t rank = 0;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    inputs.push_back(context.input(i));
    rank = std::max(rank, context.rank(inputs.back()));
  }
  for (V& input : inputs) {
    if (context.rank(input) == rank) continue;
    ir::SymShape shape = context.shape(input);
    if (shape.empty()) continue;
    shape.insert(shape.begin() + 1, static_cast<size_t>(rank) - shape.size(), 1);
    input = context.reshape(input, shape);
  }
  return inputs;
}

/// What counts where all inputs do: those without a mask count everywhere.
V joint_mask(LayerContext& context) {
  V mask = ir::kAbsent;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (context.mask(i) == ir::kAbsent) return ir::kAbsent;
    mask = mask == ir::kAbsent ? context.mask(i) : context.add("and", {mask, context.mask(i)});
  }
  return mask;
}

}  // namespace

void convert_merge(LayerContext& context) {
  const std::string_view name = context.class_name();
  const char* op = name == "Multiply" ? "mul" : name == "Maximum" ? "max" : name == "Minimum" ? "min" : "add";
  const std::vector<V> inputs = of_one_rank(context);
  if (inputs.empty()) context.invalid("it has no inputs");
  V y = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) y = context.elementwise(op, {y, inputs[i]});
  if (name == "Average")
    y = context.elementwise("div", {y, context.scalar_like(y, static_cast<double>(inputs.size()))});
  context.set_output(y, joint_mask(context));
}

void convert_subtract(LayerContext& context) {
  const std::vector<V> inputs = of_one_rank(context);
  if (inputs.size() != 2) context.invalid("it has " + std::to_string(inputs.size()) + " inputs, expected 2");
  context.set_output(context.elementwise("sub", inputs), joint_mask(context));
}

V concatenated(LayerContext& context, const std::vector<V>& parts, int64_t axis) {
  if (parts.empty()) context.invalid("it has no inputs");
  const int64_t rank = context.rank(parts[0]);
  axis = context.normalize_axis(axis, rank);
  const bool is_first =
      rank > 2 && std::any_of(parts.begin(), parts.end(), [&](V part) { return context.is_map(part); });
  if (!is_first) return Compose(context).concat(parts, axis);
  std::vector<V> moved;
  for (const V part : parts) moved.push_back(context.first(part));
  return context.last(Compose(context).concat(moved, build::ChannelsLast::axis_first(axis, rank)));
}

void convert_concatenate(LayerContext& context) {
  std::vector<V> parts;
  bool has_mask = false;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    parts.push_back(context.input(i));
    has_mask = has_mask || context.mask(i) != ir::kAbsent;
  }
  if (parts.empty()) context.invalid("it has no inputs");
  const int64_t axis = context.normalize_axis(context.config().integer("axis", -1), context.rank(parts[0]));
  const V y = concatenated(context, parts, axis);
  if (!has_mask) return context.set_output(y);
  // Of a concatenation along the features all inputs must count; along the steps the masks are joined.
  Compose c(context);
  if (axis != 1) {
    V mask = ir::kAbsent;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (context.mask(i) == ir::kAbsent) continue;
      mask = mask == ir::kAbsent ? context.mask(i) : c.binary("and", mask, context.mask(i));
    }
    return context.set_output(y, mask);
  }
  std::vector<V> masks;
  for (size_t i = 0; i < parts.size(); ++i) {
    const ir::SymShape shape = c.shape(parts[i]);
    masks.push_back(context.mask(i) != ir::kAbsent ? context.mask(i)
                                                   : c.filled(DType::kBool, {shape[0], shape[1]}, 1));
  }
  context.set_output(y, c.concat(masks, 1));
}

namespace {

/// x / max(|x|, 1e-10) along an axis.
V of_unit_length(LayerContext& context, V x, int64_t axis) {
  Compose c(context);
  const V square = c.reduce("reduce_sum", c.mul(x, x), {axis}, true);
  return c.mul(x, c.unary("rsqrt", c.binary("max", square, c.number(square, 1e-20))));
}

/// x [N,...] with axis `axis` last, or behind the batch.
V with_axis(LayerContext& context, V x, int64_t axis, bool is_last) {
  const int64_t rank = context.rank(x);
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis) perm.push_back(d);
  }
  perm.insert(is_last ? perm.end() : perm.begin() + 1, axis);
  return Compose(context).transpose(x, perm);
}

}  // namespace

// The product over one axis of each; the batch is the first one of both.
void convert_dot(LayerContext& context) {
  if (context.num_inputs() != 2)
    context.invalid("it has " + std::to_string(context.num_inputs()) + " inputs");
  V a = context.input(0), b = context.input(1);
  const ir::Ints axes = context.config().integers("axes", 2);
  const int64_t first = context.normalize_axis(axes[0], context.rank(a));
  const int64_t second = context.normalize_axis(axes[1], context.rank(b));
  if (first == 0 || second == 0) context.invalid("option axes names the batch");
  if (context.config().flag("normalize", false)) {
    a = of_unit_length(context, a, first);
    b = of_unit_length(context, b, second);
  }
  Compose c(context);
  const V left = with_axis(context, a, first, true), right = with_axis(context, b, second, false);
  const ir::SymShape x = c.shape(left), y = c.shape(right);
  ir::SymInt rows = 1, columns = 1;
  for (size_t d = 1; d + 1 < x.size(); ++d) rows = context.product(rows, x[d]);
  for (size_t d = 2; d < y.size(); ++d) columns = context.product(columns, y[d]);
  const V product =
      c.matmul(c.reshape(left, {x[0], rows, x.back()}), c.reshape(right, {y[0], y[1], columns}));
  ir::SymShape shape(x.begin(), x.end() - 1);
  shape.insert(shape.end(), y.begin() + 2, y.end());
  if (shape.size() == 1) shape.push_back(1);
  context.set_output(c.reshape(product, shape));
}

}  // namespace tensormill::frontend::keras
