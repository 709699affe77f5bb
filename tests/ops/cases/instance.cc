#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "compiler/ops/ops.h"
#include "compiler/ops/steps/host_steps.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "tests/ops/cases/cases.h"

namespace tensormill::ops_cases {
namespace {

using Random = std::mt19937_64;

/// Integer in [low, high]; the same on every platform, unlike the standard's distributions.
int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

double pick_real(Random& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
}

int64_t highest(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  return info.is_signed ? std::numeric_limits<int64_t>::max() >> (64 - value_bits(dtype)) : -1;
}

int64_t lowest(DType dtype) { return dtype_info(dtype).is_signed ? -highest(dtype) - 1 : 0; }

int64_t any_int(Random& random, DType dtype) {
  if (dtype == DType::kBool) return pick(random, 0, 1);
  switch (random() % 16) {
    case 0:
      return highest(dtype);
    case 1:
      return lowest(dtype);
    case 2:
      return 0;
    case 3:
      return -1;
    default:
      return pick(random, dtype_info(dtype).is_signed ? -20 : 0, 20);
  }
}

double any_real(Random& random) {
  switch (random() % 8) {
    case 0:
      return static_cast<double>(pick(random, -3, 3));
    case 1:
      return -0.0;
    default:
      return pick_real(random, -4, 4);
  }
}

void set_value(Tensor& tensor, int64_t i, const Operand& operand, Random& random) {
  const bool real = is_float(tensor.dtype());
  switch (operand.fill) {
    case Fill::kAny:
      if (real) return tensor.set_element(i, any_real(random));
      return tensor.set_element_int(i, any_int(random, tensor.dtype()));
    case Fill::kUnit:
      if (real) return tensor.set_element(i, pick_real(random, -1, 1));
      return tensor.set_element_int(i, pick(random, 0, 1));
    case Fill::kPositive:
      if (real) return tensor.set_element(i, pick_real(random, 0.25, 4));
      return tensor.set_element_int(i, pick(random, 1, 9));
    case Fill::kIndex:
      return tensor.set_element_int(i, pick(random, -operand.limit, operand.limit - 1));
    case Fill::kCount:
      return tensor.set_element_int(i, pick(random, 0, operand.limit - 1));
  }
}

}  // namespace

std::string Instance::name() const {
  std::string text = source->op + " (" + source->variant + ") " + std::string(dtype_name(dtype));
  for (const auto& input : inputs) text += input ? " " + to_string(input->shape) : " -";
  return text;
}

std::optional<Instance> instantiate(const Case& from, DType dtype) {
  Instance instance;
  instance.source = &from;
  instance.def = &ops::standard_ops().get(from.op);
  instance.dtype = dtype;
  for (const Operand& operand : from.operands) {
    instance.inputs.push_back(
        operand.absent ? std::nullopt
                       : std::optional(ir::ValueType{operand.dtype.value_or(dtype), operand.shape}));
  }
  ir::InferContext context{from.attrs, {}};
  for (const auto& input : instance.inputs) context.inputs.push_back(input ? &*input : nullptr);
  try {
    instance.outputs = instance.def->infer(context);
  } catch (const Error&) {
    return std::nullopt;
  }
  return instance;
}

namespace {

/// Narrow types are many, and few of their cases differ: bytes are moved alike, and conversions go through
/// f32, i32 or f64.
bool repeats(const Case& each, DType dtype) {
  static constexpr DType kPartners[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt64,
                                        DType::kUInt8,   DType::kBool,    kFloat8E5M2,     kInt4};
  const auto is_partner = [](DType other) {
    return std::find(std::begin(kPartners), std::end(kPartners), other) != std::end(kPartners);
  };
  if (each.op != "cast" && each.op != "bit_cast") return is_narrow(dtype) && dtype != kFloat8E5M2FNUZ;
  const DType to = each.attrs.dtype_of("to");
  return (is_narrow(dtype) && !is_partner(to)) || (is_narrow(to) && !is_partner(dtype));
}

}  // namespace

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const ir::OpDef& def : ops::standard_ops().all()) {
    if (!ops::is_host_step(def)) names.emplace_back(def.name);
  }
  return names;
}

std::vector<Instance> all_instances() {
  std::vector<Instance> instances;
  for (const Case& each : all_cases()) {
    const bool fixed = std::all_of(each.operands.begin(), each.operands.end(),
                                   [](const Operand& operand) { return operand.dtype || operand.absent; });
    for (const DTypeInfo& row : all_dtypes()) {
      if (repeats(each, row.dtype)) continue;
      if (std::optional<Instance> instance = instantiate(each, row.dtype))
        instances.push_back(std::move(*instance));
      if (fixed) break;
    }
  }
  return instances;
}

Tensor make_tensor(const Operand& operand, DType dtype, uint64_t seed) {
  Random random(seed);
  Tensor tensor(dtype, operand.shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) set_value(tensor, i, operand, random);
  return tensor;
}

Tensor make_hostile(const Shape& shape, DType dtype, uint64_t seed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kReals[] = {std::numeric_limits<double>::quiet_NaN(),
                                      kInfinity,
                                      -kInfinity,
                                      -0.0,
                                      0.0,
                                      1.0,
                                      -1.0,
                                      1e-40,
                                      -1e-40,
                                      3e38,
                                      -3e38,
                                      6e-8,
                                      2147483648.0,
                                      -9.3e18,
                                      0.5,
                                      -2.5};
  Random random(seed);
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (is_float(dtype)) {
      tensor.set_element(i, kReals[random() % std::size(kReals)]);
    } else {
      const int64_t values[] = {highest(dtype), lowest(dtype), 0, -1, 1, 2, 7};
      tensor.set_element_int(i, values[random() % std::size(values)]);
    }
  }
  return tensor;
}

std::vector<Tensor> make_inputs(const Instance& instance, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < instance.inputs.size(); ++i) {
    if (!instance.inputs[i]) continue;
    inputs.push_back(make_tensor(instance.source->operands[i], instance.inputs[i]->dtype, seed * 131 + i));
  }
  return inputs;
}

std::vector<Tensor> run_reference(const Instance& instance, const std::vector<Tensor>& inputs) {
  ir::ReferenceContext context{instance.source->attrs, {}, {}};
  size_t next = 0;
  for (const auto& input : instance.inputs) context.inputs.push_back(input ? &inputs[next++] : nullptr);
  std::vector<Tensor> outputs;
  for (const ir::ValueType& type : instance.outputs) outputs.push_back(Tensor::zeros(type.dtype, type.shape));
  for (Tensor& output : outputs) context.outputs.push_back(&output);
  instance.def->reference(context);
  return outputs;
}

te::Program make_program(const Instance& instance) {
  te::Program program;
  ir::ComputeContext context{instance.source->attrs, {}, {}, instance.outputs, "t"};
  for (size_t i = 0; i < instance.inputs.size(); ++i) {
    const auto& type = instance.inputs[i];
    context.input_types.push_back(type.value_or(ir::ValueType{}));
    if (type) program.inputs.push_back(te::placeholder("x" + std::to_string(i), type->dtype, type->shape));
    context.inputs.push_back(type ? program.inputs.back() : nullptr);
  }
  program.outputs = instance.def->compute(context);
  return program;
}

double tolerance_of(const ir::OpDef& def, DType dtype) {
  if (def.tolerance == 0) return 0;
  if (dtype == DType::kFloat16) return std::max(def.tolerance, 0x1p-10);
  if (dtype == DType::kBFloat16) return std::max(def.tolerance, 0x1p-7);
  return is_float(dtype) ? def.tolerance : 0;
}

std::string difference(const Tensor& actual, const Tensor& expected, double tolerance) {
  const bool is_stored = is_narrow(expected.dtype()) && actual.dtype() == storage_dtype(expected.dtype());
  if (is_stored && actual.shape() == expected.shape()) {
    Tensor typed(expected.dtype(), expected.shape());
    std::memcpy(typed.data(), actual.data(), typed.num_bytes());
    return difference(typed, expected, tolerance);
  }
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return to_string(ir::ValueType{actual.dtype(), actual.shape()}) + " instead of " +
           to_string(ir::ValueType{expected.dtype(), expected.shape()});
  }
  const bool real = is_float(expected.dtype());
  double largest = 0;
  for (int64_t i = 0; real && i < expected.num_elements(); ++i) {
    const double value = std::fabs(expected.element_as_double(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  const double bound = tolerance * std::max(largest, static_cast<double>(std::numeric_limits<float>::min()));
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double a = actual.element_as_double(i), b = expected.element_as_double(i);
    bool same = false;
    if (!real) {
      same = actual.element_as_int(i) == expected.element_as_int(i);
    } else if (std::isnan(a) || std::isnan(b)) {
      same = std::isnan(a) && std::isnan(b);
    } else if (std::isinf(a) || std::isinf(b) || tolerance == 0) {
      same = a == b && (tolerance != 0 || std::signbit(a) == std::signbit(b));
    } else {
      same = std::fabs(a - b) <= bound;
    }
    if (!same) {
      return "element " + std::to_string(i) + " of " + to_string(expected.shape()) + " is " +
             std::to_string(a) + " instead of " + std::to_string(b) + " (off by " +
             std::to_string(std::fabs(a - b) / largest) + " of the largest)";
    }
  }
  return "";
}

}  // namespace tensormill::ops_cases
