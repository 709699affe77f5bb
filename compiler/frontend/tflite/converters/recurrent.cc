// Recurrent layers of real numbers, step by step. States are variables of the file, which are zero when a run
// begins.
#include <algorithm>

#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

/// Steps that are unrolled into kernels.
constexpr int64_t kMostSteps = 1024;

/// Operands of the LSTM; those of the gates in the order input, forget, cell, output.
constexpr size_t kInputWeights = 1, kStateWeights = 5, kPeepholes = 9, kBiases = 12, kProjection = 16,
                 kProjectionBias = 17, kHidden = 18, kCell = 19, kLayerNorms = 20;

void check_float(const NodeContext& node, size_t index) {
  if (node.input_tensor(index).type != TensorType::kFloat32)
    node.unsupported(
        "operand " + std::to_string(index),
        "elements of type " + std::string(type_name(node.input_tensor(index).type)) + " are not implemented");
}

/// The state of variable operand `index` when a run begins, of `shape`.
V initial_state(NodeContext& node, size_t index, const ir::SymShape& shape) {
  if (node.has_input(index) && !node.input_tensor(index).is_variable) return node.real(index);
  return Compose(node).filled(DType::kFloat32, shape, 0);
}

/// x [steps,batch,features] or, where the time is not the first axis, [batch,steps,features], as the first
/// form.
V steps_first(NodeContext& node, V x, bool time_major) {
  if (node.rank(x) != 3) node.invalid("the input has rank " + std::to_string(node.rank(x)) + ", expected 3");
  return time_major ? x : Compose(node).transpose(x, {1, 0, 2});
}

int64_t step_count(const NodeContext& node, V x) {
  const ir::SymInt steps = node.type(x).shape[0];
  if (!steps.is_constant()) node.unsupported("operand 0", "the number of steps is a free dim");
  if (steps.hint() > kMostSteps)
    node.unsupported("operand 0", "more than " + std::to_string(kMostSteps) + " steps are not implemented");
  return steps.hint();
}

/// Values [batch,features] one behind the other along a first axis, or behind the batch.
V stacked(NodeContext& node, const std::vector<V>& steps, bool time_major) {
  Compose c(node);
  if (steps.empty()) node.invalid("a sequence without steps");
  const int64_t axis = time_major ? 0 : 1;
  std::vector<V> parts;
  for (const V step : steps) parts.push_back(c.unsqueeze(step, axis));
  return c.concat(parts, axis);
}

V within(NodeContext& node, V x, float bound) {
  return bound > 0 ? Compose(node).clip(x, -static_cast<double>(bound), static_cast<double>(bound)) : x;
}

/// One layer: its gates' weights as one product.
class Lstm {
public:
  Lstm(NodeContext& node, const UnidirectionalSequenceLSTMOptions& options)
      : node_(node), c_(node), options_(options) {
    for (size_t i = kLayerNorms; i < node.num_inputs(); ++i) {
      if (node.has_input(i))
        node.unsupported("operand " + std::to_string(i), "layer normalization is not implemented");
    }
    if (options.diagonal_recurrent_tensors)
      node.unsupported("diagonal_recurrent_tensors", "diagonal weights are not implemented");
    has_input_gate_ = node.has_input(kInputWeights);
    for (size_t gate = has_input_gate_ ? 0 : 1; gate < 4; ++gate) {
      input_.push_back(node.real(kInputWeights + gate));
      state_.push_back(node.real(kStateWeights + gate));
      biases_.push_back(node.real(kBiases + gate));
    }
    units_ = node.shape(input_.back())[0];
  }

  std::vector<V> run(V x) {
    const ir::SymShape shape = node_.shape(x);
    const auto gates = static_cast<int64_t>(input_.size());
    const V sums =
        c_.add(c_.matmul(c_.reshape(x, {shape[0] * shape[1], shape[2]}), c_.concat(input_, 0), true),
               c_.concat(biases_, 0));
    const V all = c_.reshape(sums, {shape[0], shape[1], units_ * gates});
    const V state_weights = c_.concat(state_, 0);
    V hidden = initial_state(node_, kHidden, {shape[1], node_.shape(state_.back())[1]});
    V cell = initial_state(node_, kCell, {shape[1], units_});
    std::vector<V> outputs;
    const int64_t steps = step_count(node_, x);
    for (int64_t step = 0; step < steps; ++step) {
      const V own = c_.squeeze(c_.slice(all, 0, step, 1), 0);
      const V total = c_.add(own, c_.matmul(hidden, state_weights, true));
      cell = next_cell(total, cell);
      hidden = output_of(total, cell);
      outputs.push_back(hidden);
    }
    return outputs;
  }

private:
  /// The part of gate `index` of input, forget, cell, output; with its peephole.
  V gate(V total, size_t index, V cell, size_t peephole) {
    const auto at = static_cast<int64_t>(index) - (has_input_gate_ ? 0 : 1);
    V sum = c_.slice(total, 1, units_ * at, units_);
    if (peephole != 0 && node_.has_input(peephole)) sum = c_.add(sum, c_.mul(cell, node_.real(peephole)));
    return sum;
  }

  V next_cell(V total, V cell) {
    const V forget = c_.unary("sigmoid", gate(total, 1, cell, kPeepholes + 1));
    const V input = has_input_gate_ ? c_.unary("sigmoid", gate(total, 0, cell, kPeepholes))
                                    : c_.sub(c_.number(forget, 1), forget);
    const V candidate = node_.activated(gate(total, 2, cell, 0), options_.fused_activation_function);
    return within(node_, c_.add(c_.mul(forget, cell), c_.mul(input, candidate)), options_.cell_clip);
  }

  V output_of(V total, V cell) {
    const V output = c_.unary("sigmoid", gate(total, 3, cell, kPeepholes + 2));
    V hidden = c_.mul(output, node_.activated(cell, options_.fused_activation_function));
    if (!node_.has_input(kProjection)) return hidden;
    hidden = c_.matmul(hidden, node_.real(kProjection), true);
    if (node_.has_input(kProjectionBias)) hidden = c_.add(hidden, node_.real(kProjectionBias));
    return within(node_, hidden, options_.proj_clip);
  }

  NodeContext& node_;
  Compose c_;
  const UnidirectionalSequenceLSTMOptions options_;
  bool has_input_gate_ = true;
  ir::SymInt units_;
  std::vector<V> input_, state_, biases_;
};

}  // namespace

void convert_sequence_lstm(NodeContext& node) {
  const auto options = node.options<UnidirectionalSequenceLSTMOptions>();
  check_float(node, 0);
  const V x = steps_first(node, node.real(0), options.time_major);
  node.set_real(0, stacked(node, Lstm(node, options).run(x), options.time_major));
}

// Operands: x, weights [units,features], recurrent weights [units,units], bias, state.
void convert_sequence_rnn(NodeContext& node) {
  const auto options = node.options<SequenceRNNOptions>();
  check_float(node, 0);
  Compose c(node);
  const V x = steps_first(node, node.real(0), options.time_major);
  const V weights = node.real(1), recurrent = node.real(2), bias = node.real(3);
  const int64_t steps = step_count(node, x);
  V hidden = initial_state(node, 4, {node.shape(x)[1], node.shape(weights)[0]});
  std::vector<V> outputs;
  for (int64_t step = 0; step < steps; ++step) {
    const V own = c.squeeze(c.slice(x, 0, step, 1), 0);
    const V sum = c.add(c.add(c.matmul(own, weights, true), c.matmul(hidden, recurrent, true)), bias);
    hidden = node.activated(sum, options.fused_activation_function);
    outputs.push_back(hidden);
  }
  node.set_real(0, stacked(node, outputs, options.time_major));
}

}  // namespace tensormill::frontend::tflite
