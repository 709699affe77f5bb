#include "compiler/frontend/tflite/node_context.h"

#include <algorithm>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/numbers/quantize.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::tflite {

namespace {

std::string base_of(const GraphState& state, const Operator& node, const std::string& label) {
  for (const int32_t output : node.outputs) {
    if (output < 0) continue;
    const std::string_view name = state.subgraph.tensors[static_cast<size_t>(output)].name;
    if (!name.empty()) return std::string(name);
  }
  return label;
}

bool has_same_scale(const Tensor& a, const Tensor& b) {
  const Quantization &x = a.quantization, &y = b.quantization;
  const auto zero = [](const Quantization& q) { return q.zero_point.empty() ? 0 : q.zero_point.front(); };
  return a.type == b.type && x.scale.size() == 1 && y.scale.size() == 1 && x.scale[0] == y.scale[0] &&
         zero(x) == zero(y);
}

/// Complex numbers are pairs, resources numbers of variables: both between converters alone.
std::optional<DType> held_as(TensorType type) {
  if (type == TensorType::kComplex64) return DType::kFloat32;
  return type == TensorType::kResource ? DType::kInt64 : dtype_of(type);
}

}  // namespace

bool is_quantized(const Tensor& tensor) {
  const std::optional<DType> dtype = dtype_of(tensor.type);
  return tensor.quantization.is_quantized() && dtype && is_integer(*dtype);
}

NodeContext::NodeContext(GraphState& state, const Operator& node, const std::string& label)
    : OpBuilder(state.import.graph, label, base_of(state, node, label), state.import.reserved),
      state_(state),
      node_(node) {}

const Tensor& NodeContext::input_tensor(size_t index) const {
  if (!has_input(index)) invalid("operand " + std::to_string(index) + " is missing");
  return tensor_at(node_.inputs[index]);
}

const Tensor& NodeContext::output_tensor(size_t index) const {
  if (index >= node_.outputs.size() || node_.outputs[index] < 0)
    invalid("output " + std::to_string(index) + " is missing");
  return tensor_at(node_.outputs[index]);
}

DType NodeContext::output_dtype(size_t index) const {
  const TensorType type = output_tensor(index).type;
  const std::optional<DType> dtype = dtype_of(type);
  if (!dtype)
    unsupported("output " + std::to_string(index), "elements of type " + std::string(type_name(type)));
  return *dtype;
}

V NodeContext::value_of(int32_t tensor) {
  V& value = state_.values[static_cast<size_t>(tensor)];
  if (value != ir::kAbsent) return value;
  const Tensor& from = tensor_at(tensor);
  if (!from.is_constant) invalid("tensor " + std::to_string(tensor) + " is read before anything makes it");
  const std::string name = from.name.empty() ? "constant" : std::string(from.name);
  std::string own = graph().unique_name(name);
  while (state_.import.reserved.count(own) != 0) own = graph().unique_name(own + "_");
  return value = graph().add_constant(own, state_.import.loaded.constant(from));
}

V NodeContext::stored(size_t index) {
  if (input_tensor(index).type == TensorType::kComplex64)
    unsupported("operand " + std::to_string(index), "complex numbers are not implemented here");
  return is_inner_ && index < operands_.size() ? operands_[index] : value_of(node_.inputs[index]);
}

V NodeContext::pair(size_t index) {
  if (input_tensor(index).type != TensorType::kComplex64)
    invalid("operand " + std::to_string(index) + " is not complex");
  const V value = value_of(node_.inputs[index]);
  if (shape(value).empty() || !same(shape(value).back(), 2))
    invalid("operand " + std::to_string(index) + " is no pairs of numbers");
  return value;
}

int64_t NodeContext::handle(size_t index) {
  const bool is_resource = input_tensor(index).type == TensorType::kResource;
  const ::tensormill::Tensor* known = is_resource ? graph().value(stored(index)).tensor() : nullptr;
  if (known == nullptr || known->num_elements() != 1)
    invalid("operand " + std::to_string(index) + " is no variable or table of the file");
  return known->element_as_int(0);
}

void NodeContext::refuse_exact() const {
  if (state_.import.is_exact)
    unsupported("quantized exact", "it has no form that rounds as the reference kernel does");
}

V NodeContext::dequantized(const Tensor& tensor, V value, size_t axis) {
  refuse_exact();
  const Quantization& from = tensor.quantization;
  if (from.details.index() != 0 || from.scale.empty())
    unsupported("quantization", "scales by blocks are not implemented");
  const size_t rank = shape(value).size(), count = from.scale.size();
  ir::Ints along(count == 1 ? 0 : rank, 1);
  if (count != 1) along[axis] = static_cast<int64_t>(count);
  std::vector<float> scales(from.scale.begin(), from.scale.end());
  std::vector<int64_t> zeros(from.zero_point.begin(), from.zero_point.end());
  const bool has_zero = std::any_of(zeros.begin(), zeros.end(), [](int64_t zero) { return zero != 0; });
  if (zeros.size() != count) zeros.assign(count, zeros.empty() ? 0 : zeros.front());
  V zero = ir::kAbsent;
  if (has_zero) {
    ::tensormill::Tensor points(type(value).dtype, along);
    for (size_t i = 0; i < count; ++i) points.set_element_int(static_cast<int64_t>(i), zeros[i]);
    zero = constant(std::move(points));
  }
  const V scale = constant(::tensormill::Tensor::from<float>(along, scales));
  return pointwise(value, [&](V x) { return build::dequantize(*this, x, scale, zero); });
}

V NodeContext::real(size_t index) {
  const Tensor& tensor = input_tensor(index);
  const V value = stored(index);
  if (is_quantized(tensor))
    return dequantized(tensor, value, static_cast<size_t>(tensor.quantization.dimension));
  return type(value).dtype == DType::kFloat16 && tensor.is_constant
             ? Compose(*this).cast(value, DType::kFloat32)
             : value;
}

V NodeContext::real_first(size_t index) {
  const Tensor& tensor = input_tensor(index);
  const bool is_even = is_quantized(tensor) && tensor.quantization.scale.size() == 1;
  return is_even ? dequantized(tensor, first(stored(index)), 0) : first(real(index));
}

V NodeContext::weights(size_t index, const Shape& perm, const ir::SymShape& to) {
  const Tensor& tensor = input_tensor(index);
  Compose c(*this);
  if (!tensor.is_constant) {
    const V value = real(index);
    return c.reshape(perm.empty() ? value : c.transpose(value, perm), to);
  }
  const V value = constant(state_.import.loaded.arranged(tensor, perm, to));
  if (!is_quantized(tensor)) return c.cast(value, DType::kFloat32);
  const bool is_even = tensor.quantization.scale.size() == 1;
  const int64_t dimension = tensor.quantization.dimension;
  if (is_even) return dequantized(tensor, value, 0);
  // The axis of as many elements, in its new place.
  const auto count = static_cast<int64_t>(tensor.quantization.scale.size());
  int64_t place = dimension;
  if (!perm.empty()) place = std::find(perm.begin(), perm.end(), dimension) - perm.begin();
  for (int64_t axis : {place, int64_t{0}, static_cast<int64_t>(to.size()) - 1}) {
    if (axis < static_cast<int64_t>(to.size()) && same(to[static_cast<size_t>(axis)], count))
      return dequantized(tensor, value, static_cast<size_t>(axis));
  }
  unsupported("quantization", "scales along dimension " + std::to_string(dimension) + " are not implemented");
}

bool NodeContext::is_known(size_t index) {
  const ir::Value& value = graph().value(stored(index));
  return value.constant.has_value() || static_cast<bool>(value.known);
}

ir::SymShape NodeContext::known_ints(size_t index, const char* what) {
  return build::known_integers(*this, stored(index), what);
}

ir::SymInt NodeContext::known_int(size_t index, const char* what) {
  return build::only_integer(*this, known_ints(index, what), what);
}

V NodeContext::activated(V x, Activation activation) {
  const auto clipped = [&](double low, double high) {
    return elementwise("clip", {x, scalar_like(x, low), scalar_like(x, high)});
  };
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return elementwise("relu", {x});
    case Activation::kReluN1To1:
      return clipped(-1, 1);
    case Activation::kRelu6:
      return clipped(0, 6);
    case Activation::kTanh:
      return elementwise("tanh", {x});
    case Activation::kSignBit:
      break;
  }
  unsupported("fused_activation_function", "SIGN_BIT is not implemented");
}

bool NodeContext::has_output_scale(size_t input, size_t output) const {
  const Tensor &from = input_tensor(input), &to = output_tensor(output);
  if (!is_quantized(from) && !is_quantized(to)) return true;
  return has_same_scale(from, to);
}

void NodeContext::set_stored(size_t index, V value) {
  if (index >= node_.outputs.size() || node_.outputs[index] < 0) return;
  if (is_inner_) {
    results_.resize(std::max(results_.size(), index + 1), ir::kAbsent);
    results_[index] = value;
    return;
  }
  const Tensor& tensor = output_tensor(index);
  const std::optional<DType> dtype = held_as(tensor.type);
  if (!dtype || type(value).dtype != *dtype)
    invalid("output " + std::to_string(index) + " is " + std::string(dtype_long_name(type(value).dtype)) +
            ", the file says " + std::string(type_name(tensor.type)));
  state_.values[static_cast<size_t>(node_.outputs[index])] = value;
  if (is_own(value) && !tensor.name.empty() && named_.insert(value).second)
    rename_if_free(value, std::string(tensor.name));
}

std::vector<V> NodeContext::converted_with(const std::vector<V>& operands,
                                           void (*convert)(NodeContext& node)) {
  NodeContext inner(state_, node_, label());
  inner.operands_ = operands;
  inner.is_inner_ = true;
  convert(inner);
  return inner.results_;
}

std::vector<V> NodeContext::call(uint32_t subgraph, const std::vector<V>& inputs) {
  std::optional<std::vector<V>> outputs = state_.import.call(subgraph, inputs);
  if (!outputs) throw CallFails();
  return *std::move(outputs);
}

void NodeContext::set_real(size_t index, V value, Activation activation) {
  value = activated(value, activation);
  if (index >= node_.outputs.size() || node_.outputs[index] < 0) return;
  const Tensor& tensor = output_tensor(index);
  if (!is_quantized(tensor)) return set_stored(index, value);
  refuse_exact();
  const Quantization& to = tensor.quantization;
  if (to.scale.size() != 1 || to.details.index() != 0)
    unsupported("quantization", "a result of several scales is not implemented");
  const DType dtype = output_dtype(index);
  const V scale = scalar_like(value, static_cast<double>(to.scale[0]));
  const int64_t point = to.zero_point.empty() ? 0 : to.zero_point.front();
  V zero = ir::kAbsent;
  if (point != 0) {
    ::tensormill::Tensor tensor_of_point(dtype, {});
    tensor_of_point.set_element_int(0, point);
    zero = constant(std::move(tensor_of_point));
  }
  set_stored(index, pointwise(value, [&](V x) { return build::quantize(*this, x, scale, zero, dtype); }));
}

}  // namespace tensormill::frontend::tflite
