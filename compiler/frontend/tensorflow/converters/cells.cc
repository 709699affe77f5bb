// Cells of recurrent networks that are one operator.
#include <optional>

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// Steps that are unrolled into kernels.
constexpr int64_t kMostSteps = 1024;

/// What a step of an LSTM makes, in the order in which the operators give it.
struct LstmStep {
  V input, cell, forget, output, change, activated, hidden;
};

struct LstmCell {
  V weights, bias;
  V input_peephole, forget_peephole, output_peephole;  ///< read where `has_peepholes` is set
  double forget_bias = 1, cell_clip = 0;               ///< no clip where that is 0 or less
  bool has_peepholes = false;
  bool is_forget_second =
      false;  ///< gates: input, forget, change, output; else input, change, forget, output
};

LstmStep lstm_step(NodeContext& node, const LstmCell& cell, V x, V before, V hidden) {
  Compose c(node);
  const int64_t last = node.rank(x) - 1;
  const V gates = c.add(c.matmul(c.concat({x, hidden}, last), cell.weights), cell.bias);
  const ir::SymInt units = node.shape(hidden).back();
  const auto gate = [&](int64_t index) { return c.slice(gates, last, units * index, units); };
  const auto seen = [&](V value, V of, V by) {
    return cell.has_peepholes ? c.add(value, c.mul(of, by)) : value;
  };
  LstmStep step{};
  step.input = c.unary("sigmoid", seen(gate(0), before, cell.input_peephole));
  step.change = c.unary("tanh", gate(cell.is_forget_second ? 2 : 1));
  const V forget = c.plus(gate(cell.is_forget_second ? 1 : 2), cell.forget_bias);
  step.forget = c.unary("sigmoid", seen(forget, before, cell.forget_peephole));
  step.cell = c.add(c.mul(step.change, step.input), c.mul(before, step.forget));
  if (cell.cell_clip > 0) step.cell = c.clip(step.cell, -cell.cell_clip, cell.cell_clip);
  step.output = c.unary("sigmoid", seen(gate(3), step.cell, cell.output_peephole));
  step.activated = c.unary("tanh", step.cell);
  step.hidden = c.mul(step.output, step.activated);
  return step;
}

/// Weights, three peepholes and the bias are operands from `first` on.
LstmCell lstm_cell(NodeContext& node, size_t first) {
  LstmCell cell{node.input(first), node.input(first + 4), node.input(first + 1), node.input(first + 2),
                node.input(first + 3)};
  cell.has_peepholes = node.flag("use_peephole", false);
  cell.is_forget_second = node.op() == "BlockLSTMV2";
  cell.forget_bias = cell.is_forget_second ? 0 : node.real("forget_bias", 1);
  cell.cell_clip = node.real("cell_clip", cell.is_forget_second ? 0 : 3);
  return cell;
}

std::vector<V> in_order(const LstmStep& step) {
  return {step.input, step.cell, step.forget, step.output, step.change, step.activated, step.hidden};
}

}  // namespace

// Operands: x, the cell and the hidden state before, weights, peepholes, bias.
void convert_lstm_cell(NodeContext& node) {
  const std::vector<V> made =
      in_order(lstm_step(node, lstm_cell(node, 3), node.input(0), node.input(1), node.input(2)));
  for (size_t i = 0; i < made.size(); ++i) node.set_output(i, made[i]);
}

// The same for rows x [time,batch,...]. Operand 0 says how many of them count: results of others are 0.
void convert_block_lstm(NodeContext& node) {
  Compose c(node);
  const V x = node.input(1);
  const ir::SymShape shape = node.shape(x);
  if (shape.size() != 3) node.invalid("x has shape " + to_string(shape));
  if (!shape[0].is_constant() || shape[0].hint() > kMostSteps)
    node.unsupported(
        "x", "a free number of steps, or more than " + std::to_string(kMostSteps) + ", is not implemented");
  const LstmCell cell = lstm_cell(node, 4);
  V before = node.input(2), hidden = node.input(3);
  std::vector<std::vector<V>> all(7);
  for (int64_t time = 0; time < shape[0].hint(); ++time) {
    const LstmStep step = lstm_step(node, cell, c.squeeze(c.slice(x, 0, time, 1), 0), before, hidden);
    before = step.cell;
    hidden = step.hidden;
    const std::vector<V> made = in_order(step);
    for (size_t i = 0; i < made.size(); ++i) all[i].push_back(c.unsqueeze(made[i], 0));
  }
  if (all[0].empty()) node.unsupported("x", "no steps are not implemented");
  const V length = c.reshape(c.cast(node.input(0), DType::kInt64), {});
  const V counts = c.binary("less", c.positions(shape[0], 0, 3), length);
  for (size_t i = 0; i < all.size(); ++i) {
    const V rows = c.concat(all[i], 0);
    node.set_output(i, c.where(counts, rows, c.number(rows, 0)));
  }
}

// Operands: x, the state before, weights of the gates and of the change, their biases. Results: reset,
// update, change, state.
void convert_gru_cell(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0), before = node.input(1);
  const int64_t last = node.rank(x) - 1;
  const V gates =
      c.unary("sigmoid", c.add(c.matmul(c.concat({x, before}, last), node.input(2)), node.input(4)));
  const ir::SymInt units = node.shape(before).back();
  const V reset = c.slice(gates, last, 0, units), update = c.slice(gates, last, units, units);
  const V change = c.unary(
      "tanh", c.add(c.matmul(c.concat({x, c.mul(before, reset)}, last), node.input(3)), node.input(5)));
  node.set_output(0, reset);
  node.set_output(1, update);
  node.set_output(2, change);
  node.set_output(3, c.add(change, c.mul(update, c.sub(before, change))));
}

}  // namespace tensormill::frontend::tensorflow
