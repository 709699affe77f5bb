#include "compiler/driver/element_bounds.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <string_view>

#include "compiler/driver/seeded.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/parts.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

namespace {

/// Up to so many uncertain operands every combination of their ends is evaluated.
constexpr size_t kMostCorners = 3;

/// A rounding of float32, about.
constexpr double kRounding = 0x1p-22;
constexpr uint64_t kDraws = 4;

bool is_unsigned_integer(DType dtype) { return !is_float(dtype) && !dtype_info(dtype).is_signed; }

/// Whether element `i` of `a` is below that of `b`. False for NaNs.
bool is_below(const Tensor& a, const Tensor& b, int64_t i) {
  if (is_float(a.dtype())) return a.element_as_double(i) < b.element_as_double(i);
  const int64_t x = a.element_as_int(i), y = b.element_as_int(i);
  return is_unsigned_integer(a.dtype()) ? static_cast<uint64_t>(x) < static_cast<uint64_t>(y) : x < y;
}

void copy_element(const Tensor& from, Tensor& to, int64_t i) {
  if (is_float(to.dtype())) {
    to.set_element(i, from.element_as_double(i));
  } else {
    to.set_element_int(i, from.element_as_int(i));
  }
}

ElementBounds exact(const Tensor& value) { return {value, value, value, true}; }

/// Takes what else the operator may give into the bounds.
void join(ElementBounds& bounds, const Tensor& other) {
  if (bounds.is_exact) {
    bounds.low = bounds.value.clone();
    bounds.high = bounds.value.clone();
    bounds.is_exact = false;
  }
  for (int64_t i = 0; i < other.num_elements(); ++i) {
    if (is_below(other, bounds.low, i)) copy_element(other, bounds.low, i);
    if (is_below(bounds.high, other, i)) copy_element(other, bounds.high, i);
  }
}

/// Bounds instead of tensors, for PartPlan.
class BoundsAlgebra {
public:
  BoundsAlgebra(const ir::OpRegistry& ops, bool with_movement) : ops_(ops), with_movement_(with_movement) {}

  ElementBounds whole(const Tensor& tensor) const { return exact(tensor); }

  ElementBounds part(const ElementBounds& bounds, const ir::Part& part) const {
    const Tensor value = ir::part_of(bounds.value, part);
    if (bounds.is_exact) return exact(value);
    return {value, ir::part_of(bounds.low, part), ir::part_of(bounds.high, part), false};
  }

  std::vector<ElementBounds> run(const ir::PartPlan::Operation& operation,
                                 const std::vector<const ElementBounds*>& inputs) {
    std::vector<const Tensor*> values;
    std::vector<size_t> uncertain;
    for (size_t i = 0; i < inputs.size(); ++i) {
      values.push_back(inputs[i] == nullptr ? nullptr : &inputs[i]->value);
      if (inputs[i] != nullptr && !inputs[i]->is_exact) uncertain.push_back(i);
    }
    std::vector<ElementBounds> results;
    for (const Tensor& value : evaluate(operation, values)) results.push_back(exact(value));
    if (!uncertain.empty()) join_corners(operation, inputs, uncertain, values, results);
    if (operation.node.op != "fused") widen(operation, values, results);
    return results;
  }

private:
  std::vector<Tensor> evaluate(const ir::PartPlan::Operation& operation,
                               const std::vector<const Tensor*>& inputs) const {
    if (operation.node.op == "fused") {
      std::vector<Tensor> given;
      for (const Tensor* input : inputs) given.push_back(*input);
      return ir::evaluate_reference(*operation.node.region, given);
    }
    std::vector<Tensor> results;
    for (const ir::ValueType& type : operation.outputs)
      results.push_back(Tensor::zeros(type.dtype, type.shape));
    ir::ReferenceContext context{operation.attrs, inputs, {}};
    for (Tensor& result : results) context.outputs.push_back(&result);
    ops_.get(operation.node.op).reference(context);
    return results;
  }

  /// Takes in what the operator makes of `inputs`; nothing where it refuses them, as an index past a table.
  void join_evaluated(const ir::PartPlan::Operation& operation, const std::vector<const Tensor*>& inputs,
                      std::vector<ElementBounds>& results) const {
    std::vector<Tensor> others;
    try {
      others = evaluate(operation, inputs);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTensorData) throw;
    }
    for (size_t i = 0; i < others.size(); ++i) join(results[i], others[i]);
  }

  /// The ends of the operands, in every combination where they are few. That is exact for what is monotone in
  /// each of them. Sums of products by weights of either sign are not: there the widths are added up, by the
  /// weights' magnitudes. Other operators of many elements get mixed ends.
  void join_corners(const ir::PartPlan::Operation& operation, const std::vector<const ElementBounds*>& inputs,
                    const std::vector<size_t>& uncertain, std::vector<const Tensor*> values,
                    std::vector<ElementBounds>& results) {
    const size_t corners = uncertain.size() <= kMostCorners ? size_t{1} << uncertain.size() : 2;
    for (size_t corner = 0; corner < corners; ++corner) {
      for (size_t i = 0; i < uncertain.size(); ++i) {
        const bool is_high = ((corners == 2 ? corner : corner >> i) & 1) != 0;
        values[uncertain[i]] = is_high ? &inputs[uncertain[i]]->high : &inputs[uncertain[i]]->low;
      }
      join_evaluated(operation, values, results);
    }
    if (is_linear(operation.node.op) && uncertain == std::vector<size_t>{0}) {
      join_linear(operation, inputs, results);
      return;
    }
    // A table rises and falls as it likes.
    if (operation.node.op == "lookup") return join_between(operation, *inputs[0], results);
    const ir::OpDef* def = operation.node.op == "fused" ? nullptr : &ops_.get(operation.node.op);
    const bool mixes = def == nullptr ||
                       (def->pattern != ir::Pattern::kElementwise && def->pattern != ir::Pattern::kInjective);
    for (uint64_t draw = 0; mixes && draw < kDraws; ++draw) {
      std::vector<Tensor> mixed;
      for (const size_t input : uncertain) mixed.push_back(mixed_ends(*inputs[input], draw));
      for (size_t i = 0; i < uncertain.size(); ++i) values[uncertain[i]] = &mixed[i];
      join_evaluated(operation, values, results);
    }
  }

  /// All bytes between the ends.
  void join_between(const ir::PartPlan::Operation& operation, const ElementBounds& bytes,
                    std::vector<ElementBounds>& results) const {
    Tensor at = bytes.low.clone();
    for (bool moves = true; moves;) {
      moves = false;
      for (int64_t i = 0; i < at.num_elements(); ++i) {
        if (!is_below(at, bytes.high, i)) continue;
        at.set_element_int(i, at.element_as_int(i) + 1);
        moves = true;
      }
      if (moves) join_evaluated(operation, {&at}, results);
    }
  }

  static bool is_linear(std::string_view op) {
    static constexpr std::array<std::string_view, 7> kLinear = {
        "conv", "conv_blocked", "conv_depthwise", "conv_first", "conv_transpose", "matmul", "matmul_packed"};
    return std::find(kLinear.begin(), kLinear.end(), op) != kLinear.end();
  }

  /// f(middle, w, b) more and less f(half a width, |w|, 0).
  void join_linear(const ir::PartPlan::Operation& operation, const std::vector<const ElementBounds*>& inputs,
                   std::vector<ElementBounds>& results) const {
    const ElementBounds& x = *inputs[0];
    Tensor middle(x.value.dtype(), x.value.shape()), half = middle.clone(),
                                                     weights = inputs[1]->value.clone();
    for (int64_t i = 0; i < middle.num_elements(); ++i) {
      const double low = x.low.element_as_double(i), high = x.high.element_as_double(i);
      middle.set_element(i, low / 2 + high / 2);
      half.set_element(i, high / 2 - low / 2);
    }
    for (int64_t i = 0; i < weights.num_elements(); ++i)
      weights.set_element(i, std::fabs(weights.element_as_double(i)));
    std::vector<const Tensor*> at_middle = {&middle}, of_widths = {&half, &weights};
    std::vector<Tensor> zeros;
    for (size_t i = 1; i < inputs.size(); ++i) at_middle.push_back(inputs[i] ? &inputs[i]->value : nullptr);
    zeros.reserve(inputs.size());
    for (size_t i = 2; i < inputs.size(); ++i) {
      if (inputs[i]) zeros.push_back(Tensor::zeros(inputs[i]->value.dtype(), inputs[i]->value.shape()));
      of_widths.push_back(inputs[i] ? &zeros.back() : nullptr);
    }
    Tensor low = evaluate(operation, at_middle)[0], high = low.clone();
    const Tensor width = evaluate(operation, of_widths)[0];
    for (int64_t i = 0; i < width.num_elements(); ++i) {
      low.set_element(i, low.element_as_double(i) - width.element_as_double(i));
      high.set_element(i, high.element_as_double(i) + width.element_as_double(i));
    }
    join(results[0], low);
    join(results[0], high);
  }

  /// Of each element one end; draws 2n and 2n + 1 have opposite ones.
  static Tensor mixed_ends(const ElementBounds& bounds, uint64_t draw) {
    Tensor mixed = bounds.low.clone();
    uint64_t state = draw / 2;
    for (int64_t i = 0; i < mixed.num_elements(); ++i) {
      if (next_random(state) % 2 == draw % 2) copy_element(bounds.high, mixed, i);
    }
    return mixed;
  }

  /// By what the operator itself may be off.
  void widen(const ir::PartPlan::Operation& operation, const std::vector<const Tensor*>& values,
             std::vector<ElementBounds>& results) const {
    const ir::OpDef& def = ops_.get(operation.node.op);
    for (size_t r = 0; r < results.size(); ++r) {
      const Tensor value = results[r].value;
      const double tolerance = is_float(value.dtype()) ? plan::tolerance_of(def, value.dtype(), 0) : 0;
      if (tolerance == 0) continue;
      const double allowed = tolerance * std::max<double>(largest_of(value), FLT_MIN);
      std::vector<double> by(static_cast<size_t>(value.num_elements()), allowed);
      if (operation.node.op == "gelu") widen_by_terms(*values[0], tolerance, by);
      if (with_movement_) add_movement(operation, values, r, by);
      ElementBounds& bounds = results[r];
      join(bounds, value);
      for (int64_t i = 0; i < value.num_elements(); ++i) {
        const double error = by[static_cast<size_t>(i)];
        bounds.low.set_element(i, bounds.low.element_as_double(i) - error);
        bounds.high.set_element(i, bounds.high.element_as_double(i) + error);
      }
    }
  }

  /// x / 2 + x / 2 * erf(...) is off by what its terms are, of which little is left where x is negative.
  static void widen_by_terms(const Tensor& x, double tolerance, std::vector<double>& by) {
    for (size_t i = 0; i < by.size(); ++i)
      by[i] = std::max(by[i], tolerance * std::fabs(x.element_as_double(static_cast<int64_t>(i))));
  }

  /// What a rounding of the operands moves result `r` by: of a sum near zero that is more than its tolerance.
  void add_movement(const ir::PartPlan::Operation& operation, const std::vector<const Tensor*>& values,
                    size_t r, std::vector<double>& by) const {
    const Tensor still = evaluate(operation, values)[r];
    std::vector<double> most(by.size(), 0);
    for (uint64_t draw = 0; draw < kDraws; ++draw) {
      std::vector<Tensor> moved;
      uint64_t state = draw;
      for (const Tensor* value : values) moved.push_back(value == nullptr ? Tensor() : nudged(*value, state));
      std::vector<const Tensor*> operands;
      for (size_t i = 0; i < values.size(); ++i)
        operands.push_back(values[i] == nullptr ? nullptr : &moved[i]);
      const Tensor other = evaluate(operation, operands)[r];
      for (size_t i = 0; i < most.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        const double movement = std::fabs(other.element_as_double(at) - still.element_as_double(at));
        if (movement > most[i]) most[i] = movement;
      }
    }
    for (size_t i = 0; i < most.size(); ++i) by[i] += kMovements * most[i];
  }

  static Tensor nudged(const Tensor& value, uint64_t& state) {
    if (!is_float(value.dtype())) return value;
    Tensor moved = value.clone();
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      const double by = next_random(state) % 2 == 0 ? kRounding : -kRounding;
      moved.set_element(i, value.element_as_double(i) * (1 + by));
    }
    return moved;
  }

  const ir::OpRegistry& ops_;
  bool with_movement_;
};

bool holds(const ElementBounds& bounds, int64_t i, const Tensor& actual, int64_t at, double allowance) {
  if (!is_float(actual.dtype())) {
    const int64_t low = bounds.low.element_as_int(i), high = bounds.high.element_as_int(i),
                  value = actual.element_as_int(at);
    if (!is_unsigned_integer(actual.dtype())) return low <= value && value <= high;
    return static_cast<uint64_t>(low) <= static_cast<uint64_t>(value) &&
           static_cast<uint64_t>(value) <= static_cast<uint64_t>(high);
  }
  const double value = actual.element_as_double(at);
  return bounds.low.element_as_double(i) - allowance <= value &&
         value <= bounds.high.element_as_double(i) + allowance;
}

/// Whether the operator's result changes by a step where its operand changes by next to nothing.
bool steps(const ir::Graph& region, const ir::Node& node) {
  static constexpr std::array<std::string_view, 13> kSteps = {
      "round", "floor", "ceil",    "sign",          "mod",     "less",   "less_equal",
      "equal", "not",   "greater", "greater_equal", "arg_max", "arg_min"};
  const auto is_float_value = [&](ir::ValueId id) { return is_float(region.value(id).type.dtype); };
  if (node.op == "cast") return is_float_value(node.inputs[0]) && !is_float_value(node.outputs[0]);
  return std::find(kSteps.begin(), kSteps.end(), node.op) != kSteps.end() && is_float_value(node.inputs[0]);
}

}  // namespace

bool steps_behind_inexact(const plan::Kernel& kernel) {
  if (!(kernel.tolerance > 0)) return false;
  const ir::Graph& region = *kernel.region;
  return std::any_of(region.nodes().begin(), region.nodes().end(),
                     [&](const ir::Node& node) { return steps(region, node); });
}

std::vector<ElementBounds> BoundsOfParts::evaluate(bool with_movement) const {
  ir::PartPlan plan(*kernel_.region);
  for (const ComparedPart& each : parts_) plan.add(kernel_.region->outputs()[each.output], each.part);
  BoundsAlgebra algebra(kernel_.region->ops(), with_movement);
  return plan.evaluate_as<ElementBounds>(inputs_, algebra);
}

bool BoundsOfParts::contain_unmoved(size_t part, int64_t element, const Tensor& actual, double allowance) {
  if (!narrow_) narrow_ = evaluate(false);
  return holds((*narrow_)[part], element, actual, element, allowance);
}

bool BoundsOfParts::contain(size_t part, int64_t element, const Tensor& actual, double allowance) {
  if (contain_unmoved(part, element, actual, allowance)) return true;
  if (!wide_) wide_ = evaluate(true);
  return holds((*wide_)[part], element, actual, element, allowance);
}

double largest_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat32) {
    // Without their signs floats are in the order of their bits.
    constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
    uint32_t most = 0;
    for (const float value : tensor.values<float>()) {
      const uint32_t bits = std::bit_cast<uint32_t>(value) & kMagnitude;
      most = std::max(most, bits < kInfinity ? bits : 0);
    }
    return std::bit_cast<float>(most);
  }
  double largest = 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = std::fabs(tensor.element_as_double(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

}  // namespace tensormill::driver
