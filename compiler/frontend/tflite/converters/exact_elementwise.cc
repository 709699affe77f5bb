// Operators on each element of int8 as the reference kernels compute them: those of one operand are tables.
#include <algorithm>
#include <cmath>

#include "compiler/frontend/tflite/converters/exact.h"

namespace tensormill::frontend::tflite {

namespace {

build::FixedMultiplier ratio(const Int8Scale& from, const Int8Scale& to) {
  return build::fixed_multiplier(static_cast<double>(from.scale) / static_cast<double>(to.scale));
}

Activation activation_of(const NodeContext& node) {
  if (node.op() == "ADD") return node.options<AddOptions>().fused_activation_function;
  if (node.op() == "SUB") return node.options<SubOptions>().fused_activation_function;
  return node.options<MulOptions>().fused_activation_function;
}

}  // namespace

// Both operands are brought to twice the larger scale, with 20 bits behind the point.
void convert_exact_sum_of_two(NodeContext& node) {
  constexpr int kLeftShift = 20;
  ExactNode exact(node);
  const Int8Scale a = exact.input(0), b = exact.input(1), to = exact.output();
  const double twice = 2 * static_cast<double>(std::max(a.scale, b.scale));
  const auto scaled = [&](size_t index, const Int8Scale& from) {
    const auto factor = build::fixed_multiplier(static_cast<double>(from.scale) / twice);
    return node.pointwise(exact.centered(index), [&](V x) {
      return exact.fixed.multiplied(exact.c.times(x, 1 << kLeftShift), {factor});
    });
  };
  const V left = scaled(0, a), right = scaled(1, b);
  const V sum = node.elementwise(node.op() == "ADD" ? "add" : "sub", {left, right});
  const auto back = build::fixed_multiplier(twice / std::ldexp(static_cast<double>(to.scale), kLeftShift));
  if (back.shift > 0)
    node.unsupported("quantized exact", "the output's scale is too small for an exact form");
  exact.set(node.pointwise(sum, [&](V x) { return exact.fixed.multiplied(x, {back}); }), activation_of(node));
}

// The factor is a quotient of float32.
void convert_exact_mul(NodeContext& node) {
  ExactNode exact(node);
  const Int8Scale a = exact.input(0), b = exact.input(1), to = exact.output();
  const auto factor = build::fixed_multiplier(static_cast<double>(a.scale * b.scale / to.scale));
  const V product = node.elementwise("mul", {exact.centered(0), exact.centered(1)});
  exact.set(node.pointwise(product, [&](V x) { return exact.fixed.multiplied(x, {factor}); }),
            activation_of(node));
}

// The stored integers are compared: all have one scale.
void convert_exact_extremum(NodeContext& node) {
  ExactNode exact(node);
  exact.output();
  for (size_t i = 0; i < 2; ++i) {
    exact.input(i);
    if (!node.has_output_scale(i))
      node.unsupported("quantized exact", "operands of several scales have no exact form");
  }
  node.set_stored(0,
                  node.elementwise(node.op() == "MAXIMUM" ? "max" : "min", {node.stored(0), node.stored(1)}));
}

void convert_exact_relu(NodeContext& node) {
  ExactNode exact(node);
  // A quotient of float32.
  const auto factor =
      build::fixed_multiplier(static_cast<double>(exact.input(0).scale / exact.output().scale));
  const Activation activation = node.op() == "RELU"    ? Activation::kRelu
                                : node.op() == "RELU6" ? Activation::kRelu6
                                                       : Activation::kReluN1To1;
  exact.set_by_table([&](int32_t x) { return build::multiplied(x, factor); }, activation);
}

void convert_exact_leaky_relu(NodeContext& node) {
  ExactNode exact(node);
  const float from = exact.input(0).scale, to = exact.output().scale;
  const auto identity = build::fixed_multiplier(static_cast<double>(from / to));
  const float alpha = node.options<LeakyReluOptions>().alpha;
  if (!(alpha >= 0)) node.unsupported("alpha", "a negative one has no exact form");
  const auto slope = build::fixed_multiplier(static_cast<double>(from * alpha / to));
  exact.set_by_table([&](int32_t x) { return build::multiplied(x, x >= 0 ? identity : slope); });
}

namespace {

/// gemmlowp's arithmetic of int16, as HARD_SWISH has it.
struct Words {
  static int16_t saturated(int32_t x) { return static_cast<int16_t>(std::clamp(x, -32768, 32767)); }
  static int16_t rounded_product(int16_t a, int16_t b) {
    return saturated((int32_t{a} * b + (1 << 14)) >> 15);
  }
  static int16_t truncated_product(int16_t a, int16_t b) { return saturated(int32_t{a} * b / (1 << 15)); }
  static int16_t shifted_left(int16_t x, int count) {
    return saturated(static_cast<int32_t>(std::clamp<int64_t>(int64_t{x} << count, -32768, 32767)));
  }
  static int16_t of(int32_t multiplier) {
    return saturated(static_cast<int32_t>(std::min<int64_t>((int64_t{multiplier} + (1 << 15)) >> 16, 32767)));
  }
};

}  // namespace

// x times relu6(x + 3) / 6, both in 16 bits with 7 behind the point.
void convert_exact_hard_swish(NodeContext& node) {
  ExactNode exact(node);
  const float fine = exact.input(0).scale * (1.0F / 128);
  const auto out = build::fixed_multiplier(static_cast<double>(fine / exact.output().scale));
  const auto gate = build::fixed_multiplier(static_cast<double>(fine / (3.0F / 32768)));
  if (out.shift > 0 || gate.shift > 16)
    node.unsupported("quantized exact", "scales as far apart as these have no exact form");
  exact.set_by_table([&](int32_t x) -> int32_t {
    const auto wide = static_cast<int16_t>(x * 128);
    const int16_t scaled = Words::rounded_product(wide, Words::of(out.value));
    int16_t part = gate.shift > 0 ? Words::shifted_left(wide, gate.shift - 1) : wide;
    part = Words::rounded_product(part, Words::of(gate.value));
    if (gate.shift > 0) part = Words::shifted_left(part, 1);
    if (gate.shift < 0) part = static_cast<int16_t>(build::rounded_shift(part, -gate.shift));
    part = static_cast<int16_t>((part + (1 << 15)) >> 1);
    return build::rounded_shift(Words::truncated_product(part, scaled), -out.shift);
  });
}

// The function in float32, divided by the output's scale, ties away from zero.
void convert_exact_function(NodeContext& node) {
  ExactNode exact(node);
  const float from = exact.input(0).scale, inverse = 1 / exact.output().scale;
  const std::string_view op = node.op();
  exact.set_by_table([&](int32_t q) {
    const float x = from * static_cast<float>(q);
    float y = 0;
    if (op == "LOGISTIC") y = 1.0F / (1.0F + std::exp(-x));
    if (op == "TANH") y = std::tanh(x);
    return static_cast<int32_t>(std::clamp(std::round(y * inverse), -1e6F, 1e6F));
  });
}

// Of integers by the ratio of the scales; of real numbers the nearest of x / scale, ties away from zero.
void convert_exact_quantize(NodeContext& node) {
  ExactNode exact(node);
  const Int8Scale to = exact.output();
  if (is_quantized(node.input_tensor(0))) {
    const auto factor = ratio(exact.input(0), to);
    return exact.set_by_table([&](int32_t x) { return build::multiplied(x, factor); });
  }
  const V x = node.stored(0);
  if (node.type(x).dtype != DType::kFloat32)
    node.unsupported("quantized exact", "real numbers that are not float32 have no exact form");
  exact.set(node.pointwise(x, [&](V real) {
    const V steps = exact.c.div(real, exact.c.number(real, static_cast<double>(to.scale)));
    return exact.fixed.rounded(exact.c.cast(steps, DType::kFloat64));
  }));
}

// Of constants that have one scale, too: what float16 and dynamic-range files have.
void convert_exact_dequantize(NodeContext& node) {
  ExactNode exact(node);
  const Int8Scale from = exact.input(0);
  node.set_stored(0, node.pointwise(exact.centered(0), [&](V x) {
    return exact.c.cast(exact.c.times(x, static_cast<double>(from.scale)), DType::kFloat32);
  }));
}

// Places and weights have 10 bits behind the point along each axis, the result is rounded once, ties away
// from zero.
void convert_exact_resize_bilinear(NodeContext& node) {
  constexpr int64_t kOne = 1 << 10;
  ExactNode exact(node);
  exact.input(0), exact.output();
  const auto options = node.options<ResizeBilinearOptions>();
  const ir::SymShape size = node.known_ints(1, "size"), shape = node.shape(node.stored(0));
  if (shape.size() != 4 || size.size() != 2)
    node.invalid("the input is no map of 4 axes, or the size no pair");
  if (!node.has_output_scale(0)) node.unsupported("quantized exact", "another scale has no exact form");
  Compose& c = exact.c;
  V x = c.cast(node.first(node.stored(0)), DType::kFloat64);
  for (size_t d = 0; d < 2; ++d) {
    if (!size[d].is_constant() || !shape[d + 1].is_constant())
      node.unsupported("quantized exact", "free extents have no exact form here");
    const int64_t in = shape[d + 1].hint(), out = size[d].hint();
    if (in < 1 || out < 1 || in > (1 << 20) || out > (1 << 20))
      node.unsupported("quantized exact", "a size of " + std::to_string(out) + " has no exact form");
    const int64_t step = options.align_corners && out > 1 ? (kOne * (in - 1) + (out - 1) / 2) / (out - 1)
                                                          : (kOne * in + out / 2) / out;
    std::vector<int64_t> low, high;
    std::vector<double> weight;
    for (int64_t i = 0; i < out; ++i) {
      const int64_t at = i * step + (options.half_pixel_centers ? step / 2 - kOne / 2 : 0);
      low.push_back(std::max<int64_t>(at / kOne, 0));
      high.push_back(std::min((at + kOne - 1) / kOne, in - 1));
      weight.push_back(static_cast<double>(at - kOne * low.back()));
    }
    const auto axis = static_cast<int64_t>(d) + 2;
    ir::SymShape along(4, 1);
    along[d + 2] = out;
    const V w = c.doubles(DType::kFloat64, weight, along);
    const V near = c.gather(x, c.ints(low, {out}), axis), far = c.gather(x, c.ints(high, {out}), axis);
    x = c.add(c.mul(near, c.plus(c.unary("neg", w), kOne)), c.mul(far, w));
  }
  const V settled = exact.fixed.rounded(c.times(x, std::ldexp(1.0, -20)));
  node.set_stored(0, node.last(c.cast(c.clip(settled, -128, 127), DType::kInt8)));
}

}  // namespace tensormill::frontend::tflite
