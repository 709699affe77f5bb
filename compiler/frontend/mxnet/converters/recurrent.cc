// RNN over sequences [steps, batch, input]: LSTM, GRU and plain layers, one or two directions, unrolled.
// Gates stand in the order i, f, z, o of an LSTM, r, u, n of a GRU; all weights of all layers come before all
// biases in one list of numbers.
#include "compiler/build/numbers/unrolled.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

/// Steps that are unrolled into kernels, whose compile takes ever longer.
constexpr int64_t kMostUnrolled = 256;

struct Spec {
  std::string mode;
  int64_t hidden = 0, layers = 0, directions = 1, gates = 1;
};

struct CellState {
  V h, c = ir::kAbsent;
};
struct CellWeights {
  V w, r, w_bias, r_bias;
};

Spec spec_of(NodeContext& node) {
  Spec spec;
  spec.mode = node.text("mode");
  spec.hidden = node.integer("state_size");
  spec.layers = node.integer("num_layers");
  spec.directions = node.flag("bidirectional", false) ? 2 : 1;
  const bool is_known =
      spec.mode == "lstm" || spec.mode == "gru" || spec.mode == "rnn_tanh" || spec.mode == "rnn_relu";
  constexpr int64_t kMostHidden = 1 << 16, kMostLayers = 64;
  if (!is_known || spec.hidden < 1 || spec.hidden > kMostHidden || spec.layers < 1 ||
      spec.layers > kMostLayers)
    node.invalid(std::to_string(spec.layers) + " layers of mode \"" + spec.mode.substr(0, 40) +
                 "\" and size " + std::to_string(spec.hidden));
  spec.gates = spec.mode == "lstm" ? 4 : spec.mode == "gru" ? 3 : 1;
  for (const char* name : {"projection_size", "lstm_state_clip_min", "lstm_state_clip_max"})
    if (node.has(name)) node.unsupported(name, "it is not implemented");
  if (node.flag("use_sequence_length", false))
    node.unsupported("use_sequence_length", "it is not implemented");
  node.skip("lstm_state_clip_nan");
  return spec;
}

/// Takes matrices and rows off the front of the list of all weights.
class Numbers {
public:
  Numbers(NodeContext& node, V all) : node_(node), all_(all) {}

  V next(int64_t rows, const ir::SymInt& columns) {
    Compose c(node_);
    const ir::SymInt count = node_.product(columns, rows);
    check(at_ + count);
    const V part = c.slice(all_, 0, at_, count);
    at_ += count;
    return c.reshape(part, {rows, columns});
  }
  V next_row(int64_t count) { return Compose(node_).reshape(next(1, count), {count}); }
  void check_end() {
    if (!same(at_, node_.shape(all_)[0])) check(-1);
  }

private:
  void check(const ir::SymInt& end) {
    const ir::SymInt count = node_.shape(all_)[0];
    if (!end.is_constant() || !count.is_constant() || end.hint() < 0 || end.hint() > count.hint())
      node_.invalid("weights of " + to_string(count) + " numbers do not fit its layers");
  }

  NodeContext& node_;
  V all_;
  ir::SymInt at_ = 0;
};

std::vector<CellWeights> weights_of(NodeContext& node, const Spec& spec, V all, const ir::SymInt& input) {
  if (node.rank(all) != 1) node.invalid("weights of rank " + std::to_string(node.rank(all)));
  Numbers numbers(node, all);
  std::vector<CellWeights> cells(static_cast<size_t>(spec.layers * spec.directions));
  const int64_t rows = spec.gates * spec.hidden;
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool is_first = static_cast<int64_t>(i) < spec.directions;
    cells[i].w = numbers.next(rows, is_first ? input : ir::SymInt(spec.hidden * spec.directions));
    cells[i].r = numbers.next(rows, spec.hidden);
  }
  for (CellWeights& cell : cells) {
    cell.w_bias = numbers.next_row(rows);
    cell.r_bias = numbers.next_row(rows);
  }
  numbers.check_end();
  return cells;
}

class Cell {
public:
  Cell(NodeContext& node, const Spec& spec, const CellWeights& weights)
      : c_(node), node_(node), spec_(spec), d_(weights) {}

  /// `y`: [steps, batch, hidden].
  CellState run(V x, CellState state, bool is_reverse, V& y) {
    const ir::SymShape s = node_.shape(x);
    const V sums = c_.add(c_.matmul(c_.reshape(x, {s[0] * s[1], s[2]}), d_.w, true), d_.w_bias);
    const V all = c_.reshape(sums, {s[0], s[1], spec_.gates * spec_.hidden});
    y = build::unrolled_steps(c_, all, is_reverse, state,
                              [&](V inputs, const CellState& before) { return step(inputs, before); });
    return state;
  }

private:
  V part(V sums, int64_t gate) { return c_.slice(sums, 1, spec_.hidden * gate, spec_.hidden); }

  CellState step(V inputs, const CellState& state) {
    const V past = c_.add(c_.matmul(state.h, d_.r, true), d_.r_bias);
    if (spec_.mode == "gru") return gru_step(inputs, past, state);
    const V sums = c_.add(inputs, past);
    if (spec_.mode != "lstm") return {c_.unary(spec_.mode == "rnn_relu" ? "relu" : "tanh", sums)};
    const V i = c_.unary("sigmoid", part(sums, 0)), f = c_.unary("sigmoid", part(sums, 1)),
            z = c_.unary("tanh", part(sums, 2)), o = c_.unary("sigmoid", part(sums, 3));
    const V cell = c_.add(c_.mul(f, state.c), c_.mul(i, z));
    return {c_.mul(o, c_.unary("tanh", cell)), cell};
  }

  CellState gru_step(V inputs, V past, const CellState& state) {
    const V r = c_.unary("sigmoid", c_.add(part(inputs, 0), part(past, 0))),
            u = c_.unary("sigmoid", c_.add(part(inputs, 1), part(past, 1)));
    const V n = c_.unary("tanh", c_.add(part(inputs, 2), c_.mul(r, part(past, 2))));
    return {c_.add(c_.mul(c_.sub(c_.number(u, 1), u), n), c_.mul(u, state.h))};
  }

  Compose c_;
  NodeContext& node_;
  const Spec& spec_;
  const CellWeights& d_;
};

}  // namespace

// Operands: the sequence, all weights, the states [layers*directions, batch, size] and those of cells.
void convert_rnn(NodeContext& node) {
  Compose c(node);
  const Spec spec = spec_of(node);
  const bool is_lstm = spec.mode == "lstm", shows_states = node.flag("state_outputs", false);
  V x = node.input(0);
  const V h = node.input(2), cells = is_lstm ? node.input(3) : ir::kAbsent;
  const ir::SymShape shape = node.shape(x);
  if (shape.size() != 3) node.invalid("the input has rank " + std::to_string(shape.size()));
  if (!shape[0].is_constant() || shape[0].hint() < 1 || shape[0].hint() > kMostUnrolled)
    node.unsupported("operands", "sequences of a free number of steps, or of more than " +
                                     std::to_string(kMostUnrolled) + ", are not implemented");
  const std::vector<CellWeights> weights = weights_of(node, spec, node.input(1), shape[2]);
  const ir::SymShape states{spec.layers * spec.directions, shape[1], spec.hidden};
  for (const V each : {h, cells})
    if (each != ir::kAbsent && !ir::demand_equal(node.shape(each), states))
      node.invalid("states of shape " + to_string(node.shape(each)) + ", expected " + to_string(states));
  std::vector<V> last_h, last_c;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    std::vector<V> outputs;
    for (int64_t side = 0; side < spec.directions; ++side) {
      const int64_t index = layer * spec.directions + side;
      const auto own = [&](V of) { return of == ir::kAbsent ? of : c.squeeze(c.slice(of, 0, index, 1), 0); };
      V y = ir::kAbsent;
      const CellState last =
          Cell(node, spec, weights[static_cast<size_t>(index)]).run(x, {own(h), own(cells)}, side == 1, y);
      outputs.push_back(y);
      last_h.push_back(c.unsqueeze(last.h, 0));
      if (is_lstm) last_c.push_back(c.unsqueeze(last.c, 0));
    }
    x = c.concat(outputs, 2);
  }
  node.set_output(0, x);
  if (shows_states) node.set_output(1, c.concat(last_h, 0));
  if (shows_states && is_lstm) node.set_output(2, c.concat(last_c, 0));
}

}  // namespace tensormill::frontend::mxnet
