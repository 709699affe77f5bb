// Recurrent layers of real numbers, step by step. States are variables of the file, which are zero when a run
// begins.
#include "compiler/frontend/tflite/converters/recurrent.h"

#include <algorithm>

namespace tensormill::frontend::tflite {

namespace {

/// Steps that are unrolled into kernels.
constexpr int64_t kMostSteps = 1024;

V matrix_at(NodeContext& node, size_t index) {
  const V x = node.real(index);
  if (node.rank(x) != 2) node.invalid("weights of shape " + to_string(node.shape(x)));
  return x;
}

}  // namespace

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

V stacked(NodeContext& node, const std::vector<V>& steps, bool time_major) {
  Compose c(node);
  if (steps.empty()) node.invalid("a sequence without steps");
  const int64_t axis = time_major ? 0 : 1;
  std::vector<V> parts;
  for (const V step : steps) parts.push_back(c.unsqueeze(step, axis));
  return c.concat(parts, axis);
}

namespace {

/// Operands of an LSTM; those of the gates in the order input, forget, cell, output.
struct LstmOperands {
  size_t input_weights = 1, state_weights = 5, peepholes = 9, biases = 12, projection = 16,
         projection_bias = 17, hidden = 18, cell = 19;
  size_t norms = 20;  ///< coefficients of layer normalization; 0: there are none
};
constexpr LstmOperands kForwardLstm{1, 5, 9, 12, 16, 17, 35, 36, 0};
constexpr LstmOperands kBackwardLstm{18, 22, 26, 29, 33, 34, 37, 38, 0};

struct LstmForm {
  Activation activation = Activation::kNone;
  float cell_clip = 0, proj_clip = 0;
};

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

V within(NodeContext& node, V x, float bound) {
  return bound > 0 ? Compose(node).clip(x, -static_cast<double>(bound), static_cast<double>(bound)) : x;
}

/// Steps that are gone through from the first to the last, or back; results in the order of the steps.
template <typename Step>
std::vector<V> gone_through(int64_t steps, bool is_back, const Step& make) {
  std::vector<V> outputs;
  for (int64_t i = 0; i < steps; ++i) outputs.push_back(make(is_back ? steps - 1 - i : i));
  if (is_back) std::reverse(outputs.begin(), outputs.end());
  return outputs;
}

/// One layer: its gates' weights as one product.
class Lstm {
public:
  Lstm(NodeContext& node, const LstmForm& form, const LstmOperands& at)
      : node_(node), c_(node), form_(form), at_(at) {
    has_input_gate_ = node.has_input(at.input_weights);
    has_norm_ = at.norms != 0 && node.has_input(at.norms + 1);
    for (size_t gate = has_input_gate_ ? 0 : 1; gate < 4; ++gate) {
      input_.push_back(matrix_at(node, at.input_weights + gate));
      state_.push_back(matrix_at(node, at.state_weights + gate));
      biases_.push_back(node.real(at.biases + gate));
    }
    units_ = node.shape(input_.back())[0];
  }

  /// x [steps,batch,features].
  std::vector<V> run(V x, bool is_back = false) {
    const ir::SymShape shape = node_.shape(x);
    const auto gates = static_cast<int64_t>(input_.size());
    V sums = c_.matmul(c_.reshape(x, {shape[0] * shape[1], shape[2]}), c_.concat(input_, 0), true);
    // What is normalized gets its bias behind that.
    if (!has_norm_) sums = c_.add(sums, c_.concat(biases_, 0));
    const V all = c_.reshape(sums, {shape[0], shape[1], units_ * gates});
    const V state_weights = c_.concat(state_, 0);
    V hidden = initial_state(node_, at_.hidden, {shape[1], node_.shape(state_.back())[1]});
    V cell = initial_state(node_, at_.cell, {shape[1], units_});
    return gone_through(step_count(node_, x), is_back, [&](int64_t step) {
      const V own = c_.squeeze(c_.slice(all, 0, step, 1), 0);
      const V total = c_.add(own, c_.matmul(hidden, state_weights, true));
      cell = next_cell(total, cell);
      hidden = output_of(total, cell);
      return hidden;
    });
  }

private:
  /// The part of gate `index` of input, forget, cell, output; with its peephole.
  V gate(V total, size_t index, V cell, size_t peephole) {
    const size_t at = index - (has_input_gate_ ? 0 : 1);
    V sum = c_.slice(total, 1, units_ * static_cast<int64_t>(at), units_);
    if (peephole != 0 && node_.has_input(peephole)) sum = c_.add(sum, c_.mul(cell, node_.real(peephole)));
    return has_norm_ ? normalized(sum, node_.real(at_.norms + index), biases_[at]) : sum;
  }

  V normalized(V x, V coefficients, V bias) {
    constexpr double kLeastVariance = 1e-8;
    const V centred = c_.sub(x, c_.reduce("reduce_mean", x, {1}, true));
    const V variance = c_.reduce("reduce_mean", c_.mul(centred, centred), {1}, true);
    const V scaled = c_.mul(centred, c_.unary("rsqrt", c_.plus(variance, kLeastVariance)));
    return c_.add(c_.mul(scaled, coefficients), bias);
  }

  V next_cell(V total, V cell) {
    const V forget = c_.unary("sigmoid", gate(total, 1, cell, at_.peepholes + 1));
    const V input = has_input_gate_ ? c_.unary("sigmoid", gate(total, 0, cell, at_.peepholes))
                                    : c_.sub(c_.number(forget, 1), forget);
    const V candidate = node_.activated(gate(total, 2, cell, 0), form_.activation);
    return within(node_, c_.add(c_.mul(forget, cell), c_.mul(input, candidate)), form_.cell_clip);
  }

  V output_of(V total, V cell) {
    const V output = c_.unary("sigmoid", gate(total, 3, cell, at_.peepholes + 2));
    V hidden = c_.mul(output, node_.activated(cell, form_.activation));
    if (!node_.has_input(at_.projection)) return hidden;
    hidden = c_.matmul(hidden, node_.real(at_.projection), true);
    if (node_.has_input(at_.projection_bias)) hidden = c_.add(hidden, node_.real(at_.projection_bias));
    return within(node_, hidden, form_.proj_clip);
  }

  NodeContext& node_;
  Compose c_;
  const LstmForm form_;
  const LstmOperands at_;
  bool has_input_gate_ = true, has_norm_ = false;
  ir::SymInt units_;
  std::vector<V> input_, state_, biases_;
};

struct RnnOperands {
  size_t weights = 1, recurrent = 2, bias = 3, hidden = 4;
};

/// Weights [units,features], recurrent ones [units,units]; x [steps,batch,features].
std::vector<V> rnn_steps(NodeContext& node, V x, Activation activation, const RnnOperands& at,
                         bool is_back = false) {
  Compose c(node);
  const V weights = matrix_at(node, at.weights), recurrent = matrix_at(node, at.recurrent),
          bias = node.real(at.bias);
  V hidden = initial_state(node, at.hidden, {node.shape(x)[1], node.shape(weights)[0]});
  return gone_through(step_count(node, x), is_back, [&](int64_t step) {
    const V own = c.squeeze(c.slice(x, 0, step, 1), 0);
    const V sum = c.add(c.add(c.matmul(own, weights, true), c.matmul(hidden, recurrent, true)), bias);
    return hidden = node.activated(sum, activation);
  });
}

/// Both directions of a layer, one behind the other along the features or each an output.
void set_directions(NodeContext& node, const std::vector<V>& forward, const std::vector<V>& backward,
                    bool time_major, bool merge_outputs) {
  const V one = stacked(node, forward, time_major), other = stacked(node, backward, time_major);
  if (merge_outputs) return node.set_real(0, Compose(node).concat({one, other}, 2));
  node.set_real(0, one);
  node.set_real(1, other);
}

void check_no_second_input(const NodeContext& node, size_t index) {
  for (size_t i = index; i < node.num_inputs(); ++i) {
    if (node.has_input(i))
      node.unsupported("operand " + std::to_string(i), "a second input is not implemented");
  }
}

V one_step(NodeContext& node) {
  const V x = node.real(0);
  if (node.rank(x) != 2) node.invalid("the input has rank " + std::to_string(node.rank(x)) + ", expected 2");
  return Compose(node).unsqueeze(x, 0);
}

}  // namespace

void convert_sequence_lstm(NodeContext& node) {
  const auto options = node.options<UnidirectionalSequenceLSTMOptions>();
  if (node.input_tensor(0).type == TensorType::kInt8) return set_integer_lstm(node, options);
  check_float(node, 0);
  if (options.diagonal_recurrent_tensors)
    node.unsupported("diagonal_recurrent_tensors", "diagonal weights are not implemented");
  const LstmForm form{options.fused_activation_function, options.cell_clip, options.proj_clip};
  const V x = steps_first(node, node.real(0), options.time_major);
  node.set_real(0, stacked(node, Lstm(node, form, {}).run(x), options.time_major));
}

void convert_bidirectional_lstm(NodeContext& node) {
  const auto options = node.options<BidirectionalSequenceLSTMOptions>();
  check_float(node, 0);
  check_no_second_input(node, 39);
  const LstmForm form{options.fused_activation_function, options.cell_clip, options.proj_clip};
  const V x = steps_first(node, node.real(0), options.time_major);
  set_directions(node, Lstm(node, form, kForwardLstm).run(x), Lstm(node, form, kBackwardLstm).run(x, true),
                 options.time_major, options.merge_outputs);
}

namespace {

// Operands: x, the last output, weights [4*units,features+units], bias, the last cell. Outputs: the output,
// the cell, and what the products were made of and made.
void set_basic_lstm(NodeContext& node) {
  Compose c(node);
  const V x = node.real(0), cell = node.real(4), weights = matrix_at(node, 2);
  const V both = c.concat({x, node.real(1)}, node.rank(x) - 1);
  const V sums = c.add(c.matmul(both, weights, true), node.real(3));
  const ir::SymInt units = floordiv(node.shape(weights)[0], 4);
  const auto gate = [&](int64_t index) { return c.slice(sums, node.rank(sums) - 1, units * index, units); };
  const V kept = c.mul(c.unary("sigmoid", gate(2)), cell);
  const V next = c.add(c.mul(c.unary("sigmoid", gate(0)), c.unary("tanh", gate(1))), kept);
  node.set_real(0, c.mul(c.unary("sigmoid", gate(3)), c.unary("tanh", next)));
  node.set_real(1, next);
  node.set_real(2, both);
  node.set_real(3, sums);
}

}  // namespace

void convert_lstm(NodeContext& node) {
  const auto options = node.options<LSTMOptions>();
  check_float(node, 0);
  if (options.kernel_type == LstmKernel::kBasic) return set_basic_lstm(node);
  const LstmForm form{options.fused_activation_function, options.cell_clip, options.proj_clip};
  node.set_real(0, Lstm(node, form, {}).run(one_step(node))[0]);
}

// Operands: x, weights [units,features], recurrent weights [units,units], bias, state.
void convert_sequence_rnn(NodeContext& node) {
  const auto options = node.options<SequenceRNNOptions>();
  check_float(node, 0);
  const V x = steps_first(node, node.real(0), options.time_major);
  node.set_real(0,
                stacked(node, rnn_steps(node, x, options.fused_activation_function, {}), options.time_major));
}

void convert_rnn(NodeContext& node) {
  const auto options = node.options<RNNOptions>();
  check_float(node, 0);
  node.set_real(0, rnn_steps(node, one_step(node), options.fused_activation_function, {})[0]);
}

// The operands of the second direction stand behind those of the first.
void convert_bidirectional_rnn(NodeContext& node) {
  const auto options = node.options<BidirectionalSequenceRNNOptions>();
  check_float(node, 0);
  check_no_second_input(node, 9);
  const V x = steps_first(node, node.real(0), options.time_major);
  const Activation activation = options.fused_activation_function;
  set_directions(node, rnn_steps(node, x, activation, {}), rnn_steps(node, x, activation, {5, 6, 7, 8}, true),
                 options.time_major, options.merge_outputs);
}

}  // namespace tensormill::frontend::tflite
