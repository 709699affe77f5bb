// Numbers rounded to the steps of a range, as networks that are trained for integers have them.
#include <limits>

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

struct StepRange {
  V low, high;
};

/// The range of x: of each slice along `axis` where that is not negative.
StepRange range_of(NodeContext& node, V x, int64_t axis) {
  Compose c(node);
  ir::Ints axes = c.count_to(node.rank(x));
  if (axis >= 0) axes.erase(axes.begin() + axis);
  return {c.reduce("reduce_min", x, axes, true), c.reduce("reduce_max", x, axes, true)};
}

/// A bound of the range, an operand of no dims or of one a slice.
V bound_along(NodeContext& node, V bound, V x, int64_t axis) {
  ir::SymShape along(node.shape(x).size(), 1);
  if (axis >= 0) along[static_cast<size_t>(axis)] = num_elements(node.shape(bound));
  return Compose(node).reshape(bound, along);
}

}  // namespace

// Operands: x, the ends of its range, in version 3 the number of bits. One of both ends keeps its place; the
// other one moves so that 0 is a step.
void convert_quantized_steps(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const bool is_third = node.op() == "QuantizeAndDequantizeV3", is_signed = node.flag("signed_input", true),
             is_given = node.flag("range_given", false), is_narrow = node.flag("narrow_range", false);
  const int64_t bits = is_third ? int64_t{node.known_int(3, "num_bits")} : node.integer("num_bits", 8);
  const std::string mode = is_third ? "HALF_TO_EVEN" : node.text("round_mode", "HALF_TO_EVEN");
  int64_t axis = node.integer("axis", -1);
  if (bits < 2 || bits > 24) node.invalid("num_bits is " + std::to_string(bits));
  if (mode != "HALF_TO_EVEN" && mode != "HALF_UP") node.invalid("round_mode is \"" + mode + "\"");
  if (axis >= 0) axis = node.normalize_axis(axis, node.rank(x));
  const StepRange range = is_given ? StepRange{bound_along(node, node.input(1), x, axis),
                                               bound_along(node, node.input(2), x, axis)}
                                   : range_of(node, x, axis);
  const auto whole = [&](int64_t value) { return c.number(x, static_cast<double>(value)); };
  const int64_t steps = int64_t{1} << (is_signed ? bits - 1 : bits);
  const V lowest = whole(is_signed ? -steps + (is_narrow ? 1 : 0) : 0), highest = whole(steps - 1);
  const V zero = c.number(x, 0), one = c.number(x, 1),
          none = c.number(x, static_cast<double>(std::numeric_limits<float>::max()));
  const auto scale_of = [&](V step, V end) {
    const V counts = c.binary("greater", c.mul(step, end), zero);
    return c.where(counts, c.div(step, c.where(counts, end, one)), none);
  };
  const V by_low = scale_of(lowest, range.low), by_high = scale_of(highest, range.high);
  const V is_low = c.binary("less", by_low, by_high);
  const V scale = c.where(is_low, by_low, by_high);
  const V nonzero_low = c.where(c.binary("equal", lowest, zero), one, lowest);
  const V inverse = c.where(is_low, c.div(range.low, nonzero_low), c.div(range.high, highest));
  V within = x;
  if (is_given) {
    const V low = c.where(is_low, range.low, c.mul(lowest, inverse));
    const V high = c.where(is_low, c.mul(highest, inverse), range.high);
    within = c.binary("max", c.binary("min", x, high), low);
  }
  const V scaled = c.mul(within, scale);
  V rounded = mode == "HALF_UP" ? c.unary("floor", c.plus(scaled, 0.5)) : c.unary("round", scaled);
  if (!is_given) rounded = c.binary("min", rounded, highest);
  node.set_output(0, c.mul(rounded, inverse));
}

}  // namespace tensormill::frontend::tensorflow
