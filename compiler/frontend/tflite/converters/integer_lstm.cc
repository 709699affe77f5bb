// An LSTM of int8 with cells of int16, bit for bit as the reference kernel computes it, whatever rounding the
// import asks for: what one step rounds otherwise the next ones make larger.
#include <cmath>
#include <limits>

#include "compiler/build/numbers/fixed_point.h"
#include "compiler/frontend/tflite/converters/fixed16.h"
#include "compiler/frontend/tflite/converters/recurrent.h"

namespace tensormill::frontend::tflite {

namespace {

using build::FixedMultiplier;

constexpr size_t kInputWeights = 1, kStateWeights = 5, kPeepholes = 9, kBiases = 12, kProjection = 16,
                 kHidden = 18, kCell = 19, kNorms = 20;
constexpr size_t kHiddenBetween = 4;    // among the intermediate tensors
constexpr size_t kGates = 4;            // input, forget, cell, output
constexpr size_t kNoPeephole = kGates;  // of the peepholes
constexpr double kLeast16 = std::numeric_limits<int16_t>::min(),
                 kMost16 = std::numeric_limits<int16_t>::max();

struct Scale {
  float scale = 1;
  int32_t zero = 0;
};

Scale scale_of(const NodeContext& node, const Tensor& tensor, TensorType type, const std::string& what) {
  const Quantization& from = tensor.quantization;
  if (tensor.type != type)
    node.unsupported(what, "elements of type " + std::string(type_name(tensor.type)) + " where " +
                               std::string(type_name(type)) + " is expected are not implemented");
  if (from.scale.size() != 1 || from.details.index() != 0)
    node.unsupported(what, "an LSTM of integers has one scale a tensor");
  const int64_t zero = from.zero_point.empty() ? 0 : from.zero_point.front();
  const bool is_byte = type == TensorType::kInt8;
  if (!(from.scale[0] > 0) || !std::isfinite(from.scale[0]) || zero < (is_byte ? -128 : 0) ||
      zero > (is_byte ? 127 : 0))
    node.invalid(what + " has a scale of " + std::to_string(from.scale[0]) + " and a zero point of " +
                 std::to_string(zero));
  return {from.scale[0], static_cast<int32_t>(zero)};
}

std::string operand_name(size_t index) { return "operand " + std::to_string(index); }

/// Weights without a zero point, [outputs,inputs] in the file.
struct Matrix {
  V transposed = ir::kAbsent;  ///< int32 [inputs,outputs]
  std::vector<double> sums;    ///< of the weights of an output
  float scale = 1;
};

Matrix matrix_of(NodeContext& node, size_t index) {
  const Tensor& tensor = node.input_tensor(index);
  const Scale scale = scale_of(node, tensor, TensorType::kInt8, operand_name(index));
  if (scale.zero != 0 || !tensor.is_constant || tensor.shape.size() != 2)
    node.unsupported(operand_name(index), "weights are constants of two axes without a zero point");
  const int64_t outputs = tensor.shape[0], inputs = tensor.shape[1];
  const ::tensormill::Tensor weights = node.arranged(index, {1, 0}, {inputs, outputs});
  Matrix matrix{Compose(node).cast(node.constant(weights), DType::kInt32),
                std::vector<double>(static_cast<size_t>(outputs)), scale.scale};
  for (int64_t i = 0; i < inputs * outputs; ++i)
    matrix.sums[static_cast<size_t>(i % outputs)] += weights.element_as_double(i);
  return matrix;
}

/// A constant vector of integers.
ir::CheckedList<double> numbers_of(NodeContext& node, size_t index, TensorType type, size_t count) {
  const Tensor& tensor = node.input_tensor(index);
  if (tensor.type != type || !tensor.is_constant)
    node.unsupported(operand_name(index), "it is no constant of " + std::string(type_name(type)));
  if (tensor.shape.size() != 1 || static_cast<size_t>(tensor.shape[0]) != count)
    node.invalid(operand_name(index) + " has not one number for each of " + std::to_string(count) + " units");
  const ::tensormill::Tensor whole = node.arranged(index, {}, {static_cast<int64_t>(count)});
  std::vector<double> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(whole.element_as_double(static_cast<int64_t>(i)));
  return numbers;
}

/// The products of all gates with one operand: what is multiplied, added and scaled.
struct Products {
  V weights = ir::kAbsent;  ///< [inputs,gates*units]
  V offsets = ir::kAbsent;  ///< float64 [gates*units]
  std::vector<FixedMultiplier> multipliers;
};

class IntegerLstm {
public:
  IntegerLstm(NodeContext& node, const UnidirectionalSequenceLSTMOptions& options)
      : node_(node), c_(node), fixed_(node), options_(options) {
    check_form();
    first_gate_ = node.has_input(kInputWeights) ? 0 : 1;
    const Ints forget = node.input_tensor(kInputWeights + 1).shape;
    units_ = forget.empty() ? 0 : static_cast<size_t>(forget[0]);
    from_ = scale_of(node, node.input_tensor(0), TensorType::kInt8, operand_name(0));
    hidden_ = scale_of(node, node.input_tensor(kHidden), TensorType::kInt8, operand_name(kHidden));
    set_cell_power();
    own_ = products(kInputWeights, from_, true);
    back_ = products(kStateWeights, hidden_, false);
    sigmoid_ = table(-1, [](int16_t x) { return fixed_sigmoid(x); });
    tanh_ = tanh_table(3);
    cell_tanh_ = tanh_table(15 + cell_power_);
    set_output();
  }

  /// x int8 [steps,batch,features]; results are int8 [batch,outputs].
  std::vector<V> run(V x) {
    const ir::SymShape shape = node_.shape(x);
    const auto width = static_cast<int64_t>((kGates - first_gate_) * units_);
    const V rows = c_.cast(c_.reshape(x, {shape[0] * shape[1], shape[2]}), DType::kInt32);
    const V all = c_.reshape(scaled(rows, own_), {shape[0], shape[1], width});
    V hidden = start(kHidden, DType::kInt8, {shape[1], node_.input_tensor(kStateWeights + 1).shape[1]},
                     hidden_.zero);
    V cell =
        c_.cast(start(kCell, DType::kInt16, {shape[1], static_cast<int64_t>(units_)}, 0), DType::kFloat64);
    std::vector<V> outputs;
    const int64_t steps = step_count(node_, x);
    for (int64_t step = 0; step < steps; ++step) {
      const V own = c_.squeeze(c_.slice(all, 0, step, 1), 0);
      const V total = within16(c_.add(own, scaled(c_.cast(hidden, DType::kInt32), back_)));
      cell = next_cell(total, cell);
      hidden = output_of(total, cell);
      outputs.push_back(hidden);
    }
    return outputs;
  }

private:
  void check_form() {
    if (options_.diagonal_recurrent_tensors)
      node_.unsupported("diagonal_recurrent_tensors", "diagonal weights are not implemented");
    if (options_.fused_activation_function != Activation::kTanh)
      node_.unsupported("fused_activation_function", "an LSTM of integers has tanh alone");
    for (size_t i = kNorms; i < node_.num_inputs(); ++i)
      if (node_.has_input(i))
        node_.unsupported(operand_name(i), "layer normalization of integers is not implemented");
    const Ints between = node_.node().intermediates;
    if (between.size() != kHiddenBetween + 1)
      node_.unsupported("intermediates",
                        "an LSTM of integers has 5 of them: cells of int8 are not implemented");
    if (between[kHiddenBetween] < 0) node_.invalid("the hidden intermediate tensor is missing");
    // The reference kernel goes through the cells by rows as long as the projection's.
    if (node_.has_input(kProjection) && node_.has_input(kPeepholes + 1))
      node_.unsupported(operand_name(kProjection),
                        "a projection beside peepholes is not implemented for integers");
  }

  /// The cell's scale is 2^cell_power_.
  void set_cell_power() {
    const float scale =
        scale_of(node_, node_.input_tensor(kCell), TensorType::kInt16, operand_name(kCell)).scale;
    int exponent = 0;
    if (std::frexp(scale, &exponent) != 0.5F)
      node_.unsupported(operand_name(kCell), "a cell whose scale is no power of 2 is not implemented");
    cell_power_ = exponent - 1;
    constexpr int kLeastPower = -15, kMostPower = -9;
    if (cell_power_ < kLeastPower || cell_power_ > kMostPower)
      node_.unsupported(operand_name(kCell), "the cell has a scale of 2^" + std::to_string(cell_power_) +
                                                 ", 2^-15 to 2^-9 are implemented");
    cell_clip_ = clip_of(options_.cell_clip, scale, kMost16);
  }

  double clip_of(float bound, float scale, double most) const {
    return bound > 0 ? std::trunc(std::min(static_cast<double>(bound / scale), most)) : 0;
  }

  FixedMultiplier multiplier(float weight, float of) const {
    constexpr float kGate = 1.0F / 4096;  // a gate's sum has 12 bits behind the point
    return build::fixed_multiplier(static_cast<double>(weight * of / kGate));
  }

  Products products(size_t first, const Scale& of, bool has_biases) {
    std::vector<V> parts;
    std::vector<double> offsets;
    Products made;
    for (size_t gate = first_gate_; gate < kGates; ++gate) {
      const Matrix matrix = matrix_of(node_, first + gate);
      if (matrix.sums.size() != units_)
        node_.invalid(operand_name(first + gate) + " is of another number of units");
      const std::vector<double> biases = has_biases
                                             ? numbers_of(node_, kBiases + gate, TensorType::kInt32, units_)
                                             : std::vector<double>(units_);
      parts.push_back(matrix.transposed);
      for (size_t i = 0; i < units_; ++i) offsets.push_back(biases[i] - of.zero * matrix.sums[i]);
      made.multipliers.insert(made.multipliers.end(), units_, multiplier(matrix.scale, of.scale));
    }
    made.weights = c_.concat(parts, 1);
    made.offsets = vector(offsets);
    return made;
  }

  V vector(const std::vector<double>& values) {
    return c_.doubles(DType::kFloat64, values, {static_cast<int64_t>(values.size())});
  }

  V within16(V x) { return c_.clip(x, kLeast16, kMost16); }

  /// x int32 [rows,inputs] times the weights, in 12 bits behind the point.
  V scaled(V x, const Products& by) {
    const V sums = c_.add(c_.cast(c_.matmul(x, by.weights), DType::kFloat64), by.offsets);
    return within16(fixed_.multiplied(sums, by.multipliers, {static_cast<int64_t>(by.multipliers.size())}));
  }

  V tanh_table(int integer_bits) {
    return table(integer_bits, [integer_bits](int16_t x) { return fixed_tanh(x, integer_bits); });
  }

  /// What the function number `key` makes of each int16; one for all layers.
  template <typename Compute>
  V table(int key, const Compute& compute) {
    const auto [found, is_new] = node_.import_state().tables.try_emplace(key, ir::kAbsent);
    if (!is_new) return found->second;
    constexpr int32_t kCount = 1 << 16;
    ::tensormill::Tensor values(DType::kInt16, {kCount});
    for (int32_t i = 0; i < kCount; ++i)
      values.set_element_int(i, compute(static_cast<int16_t>(i + static_cast<int32_t>(kLeast16))));
    return found->second = node_.constant(std::move(values));
  }

  V looked_up(V values, V x) {
    return c_.cast(c_.gather(values, c_.cast(c_.minus(x, kLeast16), DType::kInt64), 0), DType::kFloat64);
  }

  V start(size_t index, DType dtype, const ir::SymShape& shape, double zero) {
    if (node_.has_input(index) && !node_.input_tensor(index).is_variable) return node_.stored(index);
    return c_.filled(dtype, shape, zero);
  }

  V gate(V total, size_t index, V cell, size_t peephole, V values) {
    const auto units = static_cast<int64_t>(units_);
    V sum = c_.slice(total, 1, units * static_cast<int64_t>(index - first_gate_), units);
    if (peephole != kNoPeephole && node_.has_input(kPeepholes + peephole)) {
      const size_t at = kPeepholes + peephole;
      const float scale = scale_of(node_, node_.input_tensor(at), TensorType::kInt16, operand_name(at)).scale;
      const V products = c_.mul(cell, vector(numbers_of(node_, at, TensorType::kInt16, units_)));
      sum = within16(
          c_.add(sum, fixed_.multiplied(products, {multiplier(std::ldexp(1.0F, cell_power_), scale)})));
    }
    return looked_up(values, sum);
  }

  V next_cell(V total, V cell) {
    const V forget = gate(total, 1, cell, 1, sigmoid_);
    const V input =
        first_gate_ == 0 ? gate(total, 0, cell, 0, sigmoid_) : c_.sub(c_.number(forget, kMost16), forget);
    const V candidate = gate(total, 2, cell, kNoPeephole, tanh_);
    const V kept = fixed_.rounded_shift(c_.mul(forget, cell), {15}, {});
    const V added = fixed_.rounded_shift(c_.mul(input, candidate), {30 + cell_power_}, {});
    const V next = within16(c_.add(kept, added));
    return cell_clip_ > 0 ? c_.clip(next, -cell_clip_, cell_clip_) : next;
  }

  void set_output() {
    const auto between = static_cast<size_t>(node_.node().intermediates[kHiddenBetween]);
    inner_ =
        scale_of(node_, node_.subgraph_tensor(between), TensorType::kInt8, "the hidden intermediate tensor");
    constexpr float kUnit = 1.0F / 32768;
    inner_multiplier_ = build::fixed_multiplier(static_cast<double>(kUnit / inner_.scale * kUnit));
    if (!node_.has_input(kProjection)) return;
    const Matrix matrix = matrix_of(node_, kProjection);
    std::vector<double> offsets(matrix.sums.size());
    if (node_.has_input(kProjection + 1))
      offsets = numbers_of(node_, kProjection + 1, TensorType::kInt32, matrix.sums.size());
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] -= inner_.zero * matrix.sums[i];
    projection_ = {
        matrix.transposed,
        vector(offsets),
        {build::fixed_multiplier(static_cast<double>(matrix.scale * inner_.scale / hidden_.scale))}};
    proj_clip_ = clip_of(options_.proj_clip, hidden_.scale, 127);
  }

  V byte_of(V integers, int32_t zero) {
    return c_.cast(c_.clip(zero == 0 ? integers : c_.plus(integers, zero), -128, 127), DType::kInt8);
  }

  V output_of(V total, V cell) {
    const V output = gate(total, 3, cell, 2, sigmoid_);
    const V products = c_.mul(output, looked_up(cell_tanh_, cell));
    const V inner = byte_of(fixed_.multiplied(products, {inner_multiplier_}), inner_.zero);
    if (projection_.weights == ir::kAbsent) return inner;
    const V sums = c_.cast(c_.matmul(c_.cast(inner, DType::kInt32), projection_.weights), DType::kFloat64);
    const V result =
        byte_of(fixed_.multiplied(c_.add(sums, projection_.offsets), projection_.multipliers), hidden_.zero);
    return proj_clip_ > 0 ? c_.clip(result, -proj_clip_, proj_clip_) : result;
  }

  NodeContext& node_;
  Compose c_;
  build::FixedPoint fixed_;
  const UnidirectionalSequenceLSTMOptions options_;
  size_t first_gate_ = 0, units_ = 0;
  Scale from_, hidden_, inner_;
  int cell_power_ = 0;
  double cell_clip_ = 0, proj_clip_ = 0;
  Products own_, back_, projection_;
  FixedMultiplier inner_multiplier_;
  V sigmoid_ = ir::kAbsent, tanh_ = ir::kAbsent, cell_tanh_ = ir::kAbsent;
};

}  // namespace

void set_integer_lstm(NodeContext& node, const UnidirectionalSequenceLSTMOptions& options) {
  if (!node.has_output_scale(kHidden))
    node.unsupported("output 0", "another scale than of the state is not implemented");
  const V x = steps_first(node, node.stored(0), options.time_major);
  node.set_stored(0, stacked(node, IntegerLstm(node, options).run(x), options.time_major));
}

}  // namespace tensormill::frontend::tflite
