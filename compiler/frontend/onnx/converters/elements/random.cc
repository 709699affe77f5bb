// Operators that draw random numbers. The numbers are constants of the package, a function of attribute seed,
// or else of the model and the node: each run gives the same. Of free extents they come from tables.
#include <bit>
#include <cmath>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "compiler/frontend/onnx/graph/philox.h"

namespace tensormill::frontend::onnx {

namespace {

/// Random constants take room in the package.
constexpr int64_t kMaxDraws = int64_t{1} << 24;

enum class Draw : uint8_t { kUniform, kNormal };

RandomSequence sequence_of(const NodeContext& context) {
  if (const AttributeProto* seed = context.node().find("seed"); seed != nullptr) {
    // Dropout's is an integer, the others' are floats; the field that is not set is 0.
    const auto real = std::bit_cast<uint64_t>(static_cast<double>(seed->f));
    return RandomSequence(real ^ static_cast<uint64_t>(seed->i));
  }
  Hasher hasher;
  hasher.update_field(context.source_digest().text());
  hasher.update_field(context.label());
  const std::array<uint8_t, 32> bytes = hasher.finish().bytes();
  uint64_t key = 0;
  for (size_t i = 0; i < 8; ++i) key = key << 8 | bytes[i];
  return RandomSequence(key);
}

double number_of(const RandomSequence& sequence, Draw draw, int64_t position) {
  return draw == Draw::kUniform ? sequence.uniform(position) : sequence.normal(position);
}

/// As many as free extents make: sums of two draws, from tables that repeat after two primes, so that a pair
/// comes again after their product. The sum of two normal numbers is normal, the fraction of the sum of two
/// uniform ones uniform.
ir::ValueId drawn_from_tables(NodeContext& context, const ir::SymShape& shape, Draw draw) {
  constexpr int64_t kFirst = 4093, kSecond = 4099;
  Compose c(context);
  ir::ValueId place = c.ints({0}, ir::SymShape(shape.size(), 1));
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    ir::SymShape along(shape.size(), 1);
    along[axis] = shape[axis];
    place = c.add(c.mul(place, c.dims({shape[axis]}, {})), c.iota(shape[axis], along));
  }
  const RandomSequence sequence = sequence_of(context);
  const auto from_table = [&](int64_t start, int64_t size) {
    std::vector<double> numbers;
    for (int64_t i = 0; i < size; ++i) numbers.push_back(number_of(sequence, draw, start + i));
    const ir::ValueId at = context.add("mod", {place, c.dims({size}, {})}, {{"fmod", int64_t{0}}});
    return c.gather(c.doubles(DType::kFloat32, numbers, {size}), at, 0);
  };
  const ir::ValueId sum = c.add(from_table(0, kFirst), from_table(kFirst, kSecond));
  if (draw == Draw::kNormal) return c.times(sum, std::sqrt(0.5));
  return c.where(c.binary("less", sum, c.number(sum, 1)), sum, c.minus(sum, 1));
}

ir::ValueId drawn(NodeContext& context, DType dtype, const ir::SymShape& shape, Draw draw, double base,
                  double span) {
  if (!is_float(dtype)) context.invalid("dtype is " + std::string(dtype_name(dtype)) + ", expected a float");
  if (!shape.is_constant()) {
    Compose c(context);
    return c.cast(c.plus(c.times(drawn_from_tables(context, shape, draw), span), base), dtype);
  }
  if (num_elements(shape) > kMaxDraws)
    context.unsupported("shape", "more than " + std::to_string(kMaxDraws) + " random numbers");
  const RandomSequence sequence = sequence_of(context);
  Tensor values(dtype, shape);
  for (int64_t i = 0; i < values.num_elements(); ++i)
    values.set_element(i, base + span * number_of(sequence, draw, i));
  return context.constant(std::move(values));
}

/// Of [0, 1) in float32, one for each element of `shape`.
ir::ValueId unit_draws(NodeContext& context, const ir::SymShape& shape) {
  return drawn(context, DType::kFloat32, shape, Draw::kUniform, 0, 1);
}

ir::ValueId drawn_as_said(NodeContext& context, DType dtype, const ir::SymShape& shape) {
  const bool uniform = context.node().op_type.find("Uniform") != std::string::npos;
  const double base = uniform ? context.float_attr("low", 0) : context.float_attr("mean", 0);
  const double span = uniform ? context.float_attr("high", 1) - base : context.float_attr("scale", 1);
  const Draw draw = uniform ? Draw::kUniform : Draw::kNormal;
  return drawn(context, dtype, shape, draw, base, span);
}

}  // namespace

void convert_random(NodeContext& context) {
  const ir::SymShape shape = context.required_ints("shape");
  for (const int64_t extent : shape) {
    if (extent < 0) context.invalid("shape is " + to_string(shape));
  }
  const DType dtype = context.has_attr("dtype") ? context.dtype_attr("dtype") : DType::kFloat32;
  context.set_output(0, drawn_as_said(context, dtype, shape));
}

void convert_random_like(NodeContext& context) {
  context.require_fixed_shape(0);
  const ir::ValueType type = context.type(context.input(0));
  const DType dtype = context.has_attr("dtype") ? context.dtype_attr("dtype") : type.dtype;
  context.set_output(0, drawn_as_said(context, dtype, type.shape));
}

// 1 with the probability that the input says.
void convert_bernoulli(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const DType to = context.has_attr("dtype") ? context.dtype_attr("dtype") : c.dtype(x);
  const ir::ValueId below = c.binary("less", unit_draws(context, c.shape(x)), c.cast(x, DType::kFloat32));
  context.set_output(0, c.cast(below, to));
}

// Classes drawn by their logarithmic weights: the first whose cumulated probability passes a uniform number.
void convert_multinomial(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const ir::SymShape shape = c.shape(x);
  const int64_t count = context.int_attr("sample_size", 1);
  if (shape.size() != 2 || shape[1] < 1 || count < 0)
    context.invalid("sample_size " + std::to_string(count) + " of weights of shape " + to_string(shape));
  const ir::ValueId weights = context.add("softmax", {c.cast(x, DType::kFloat32)}, {{"axis", int64_t{1}}});
  const ir::ValueId passed = context.add("cumsum", {weights}, {{"axis", int64_t{1}}});
  const ir::ValueId draws = unit_draws(context, {shape[0], count, 1});
  const ir::ValueId below =
      c.cast(c.binary("less_equal", c.reshape(passed, {shape[0], 1, shape[1]}), draws), DType::kInt64);
  // Rounding may leave the last sum below 1.
  const ir::ValueId chosen =
      c.clip(c.reduce("reduce_sum", below, {2}, false), 0, static_cast<double>(shape[1] - 1));
  context.set_output(0,
                     c.cast(chosen, context.has_attr("dtype") ? context.dtype_attr("dtype") : DType::kInt32));
}

namespace {

/// Dropout's ratio as f64 [1]; a run that trains and has another than of [0,1) fails.
ir::ValueId dynamic_ratio(NodeContext& context, ir::ValueId training) {
  Compose c(context);
  if (!context.has_input(1)) return c.doubles(DType::kFloat64, {0.5}, {1});
  const ir::ValueId ratio = c.cast(one_number(context, 1, "ratio"), DType::kFloat64);
  const ir::ValueId is_part = c.binary("and", c.binary("greater_equal", ratio, c.number(ratio, 0)),
                                       c.binary("less", ratio, c.number(ratio, 1)));
  return checked_number(context, ratio, c.binary("or", is_part, c.unary("not", training)),
                        "ratio is {}, expected [0,1)");
}

/// Dropout where a run says whether it trains, or how much is dropped.
void dynamic_dropout(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  if (num_elements(c.shape(context.input(2))) != 1)
    context.invalid("training_mode has shape " + to_string(c.shape(context.input(2))));
  const ir::ValueId training = c.cast(c.reshape(context.input(2), {1}), DType::kBool);
  const ir::ValueId ratio = dynamic_ratio(context, training);
  const ir::ValueId draws = unit_draws(context, c.shape(x));
  const auto scalar = [&](ir::ValueId value) { return c.reshape(value, {}); };
  const ir::ValueId kept =
      c.binary("or", c.binary("greater_equal", draws, scalar(c.cast(ratio, c.dtype(draws)))),
               scalar(c.unary("not", training)));
  const ir::ValueId left = c.sub(c.number(ratio, 1), ratio);
  const ir::ValueId scale = c.where(training, c.unary("reciprocal", left), c.number(left, 1));
  const ir::ValueId scaled = c.mul(x, scalar(c.cast(scale, c.dtype(x))));
  context.set_output(0, c.where(kept, scaled, c.number(x, 0)));
  context.set_output(1, kept);
}

}  // namespace

void convert_dropout(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const bool has_mode = context.has_input(2);
  const bool is_static = has_mode && context.is_known(2);
  const bool training = is_static && context.known_scalar(2, "training_mode").element_as_int(0) != 0;
  if ((has_mode && !is_static) || (training && is_run_time_value(context, 1))) {
    dynamic_dropout(context);
    return;
  }
  const bool has_ratio = training && context.has_input(1);
  const double ratio = has_ratio ? context.known_scalar(1, "ratio").element_as_double(0) : 0.5;
  if (!(ratio >= 0 && ratio < 1)) context.invalid("ratio is " + std::to_string(ratio) + ", expected [0,1)");
  ir::ValueId kept = ir::kAbsent;
  if (training && ratio != 0) {
    const ir::ValueId draws = unit_draws(context, c.shape(x));
    kept = c.binary("greater_equal", draws, c.number(draws, ratio));
    context.set_output(0, c.where(kept, c.times(x, 1 / (1 - ratio)), c.number(x, 0)));
  } else {
    convert_identity(context);
  }
  if (context.num_outputs() < 2 || context.node().outputs[1].empty()) return;
  context.set_output(1, kept != ir::kAbsent ? kept : c.filled(DType::kBool, c.shape(x), 1));
}

}  // namespace tensormill::frontend::onnx
