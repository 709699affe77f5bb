// LSTM, GRU and RNN over sequences [steps, batch, input]. A short sequence of known length is unrolled into
// kernels, any other is a host step for each direction. Gates stand in Core ML's order: i, f, o, z of an
// LSTM, r, o, z of a GRU.
#include <algorithm>

#include "compiler/build/numbers/unrolled.h"
#include "compiler/frontend/coreml/node_context.h"
#include "runtime/host_ops/recurrent_math.h"

namespace tensormill::frontend::coreml {

namespace {

/// Steps that are unrolled into kernels, whose compile takes ever longer.
constexpr int64_t kMostUnrolled = 256;

enum class CellKind : uint8_t { kRnn, kGru, kLstm };

/// As the host step calls it, with its factors.
struct CellActivation {
  std::string name;
  double alpha = 1, beta = 1;

  V of(NodeContext& node, V x) const {
    Compose c(node);
    if (name == "Affine") return x;
    if (name == "HardSigmoid") return node.add("hard_sigmoid", {x}, {{"alpha", alpha}, {"beta", beta}});
    return c.unary(name == "Sigmoid" ? "sigmoid" : name == "Relu" ? "relu" : "tanh", x);
  }
};

CellActivation activation_named(NodeContext& node, const char* operand, const char* otherwise) {
  std::string name = node.text(operand, otherwise);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char each) { return each >= 'A' && each <= 'Z' ? static_cast<char>(each + 32) : each; });
  if (name == "sigmoid") return {"Sigmoid"};
  // The factors of the scaled one are 1 in recurrent operations.
  if (name == "tanh" || name == "scaled_tanh") return {"Tanh"};
  if (name == "relu") return {"Relu"};
  if (name == "linear") return {"Affine", 1, 0};
  if (name == "hard_sigmoid" || name == "sigmoid_hard") return {"HardSigmoid", 0.2, 0.5};
  node.unsupported(operand, "\"" + name + "\" is not implemented");
}

/// One direction.
struct CellWeights {
  V w, r;                    ///< [gates*hidden, input], [gates*hidden, hidden]
  V bias = ir::kAbsent;      ///< [gates*hidden], the inputs'
  V r_bias = ir::kAbsent;    ///< [gates*hidden], the states', where the reset gate comes after it
  V peephole = ir::kAbsent;  ///< [3*hidden]: i, f, o
  bool is_reverse = false;
};
struct CellState {
  V h, c = ir::kAbsent;
};

class Layer {
public:
  Layer(NodeContext& node, CellKind kind) : node_(node), c_(node), kind_(kind) {
    if (kind == CellKind::kRnn) {
      activations_ = {activation_named(node, "activation", "tanh")};
      return;
    }
    activations_ = {activation_named(node, "recurrent_activation", "sigmoid")};
    if (kind == CellKind::kLstm) activations_.push_back(activation_named(node, "cell_activation", "tanh"));
    activations_.push_back(activation_named(node, "activation", "tanh"));
    if (kind == CellKind::kLstm && node.has("clip")) clip_ = node.real("clip");
    is_late_ = kind == CellKind::kGru && node.flag("reset_after", false);
  }

  bool is_late() const { return is_late_; }
  int64_t gates() const { return kind_ == CellKind::kLstm ? 4 : kind_ == CellKind::kGru ? 3 : 1; }

  /// The last state; `y` is [steps, batch, hidden].
  CellState run(const CellWeights& d, V x, const CellState& first, V& y) {
    check(d, x);
    const ir::SymInt steps = node_.shape(x)[0];
    const bool is_short = steps.is_constant() && steps.hint() <= kMostUnrolled;
    if (is_short && steps.hint() > 0) return unrolled(d, x, first, y);
    if (clip_) node_.unsupported("clip", "it is not implemented over a free number of steps");
    return on_host(d, x, first, y);
  }

private:
  void check(const CellWeights& d, V x) {
    const ir::SymShape r = node_.shape(d.r), w = node_.shape(d.w);
    if (node_.rank(x) != 3 || r.size() != 2 || w.size() != 2 || !r[1].is_constant() ||
        !same(r[0], r[1] * gates()) || !same(w[0], r[0]))
      node_.invalid("weights of shapes " + to_string(w) + " and " + to_string(r) + " for an input of shape " +
                    to_string(node_.shape(x)));
    hidden_ = r[1];
  }

  V biased(V x, V bias) { return bias == ir::kAbsent ? x : c_.add(x, bias); }
  V part(V x, int64_t index) { return c_.slice(x, node_.rank(x) - 1, hidden_ * index, hidden_); }

  V input_sums(V x, V w, V bias) {
    const ir::SymShape s = node_.shape(x);
    const V rows = biased(c_.matmul(c_.reshape(x, {s[0] * s[1], s[2]}), w, true), bias);
    return c_.reshape(rows, {s[0], s[1], hidden_ * gates()});
  }

  CellState unrolled(const CellWeights& d, V x, const CellState& first, V& y) {
    CellState state = first;
    y = build::unrolled_steps(c_, input_sums(x, d.w, d.bias), d.is_reverse, state,
                              [&](V inputs, const CellState& before) { return step(d, inputs, before); });
    return state;
  }

  CellState step(const CellWeights& d, V inputs, const CellState& state) {
    if (kind_ == CellKind::kGru) return gru_step(d, inputs, state);
    const V sums = c_.add(inputs, c_.matmul(state.h, d.r, true));
    if (kind_ == CellKind::kRnn) return {activations_[0].of(node_, sums)};
    const auto gate = [&](int64_t index, V cell) {
      V sum = part(sums, index);
      if (d.peephole != ir::kAbsent) sum = c_.add(sum, c_.mul(part(d.peephole, index), cell));
      return activations_[0].of(node_, sum);
    };
    const V i = gate(0, state.c), f = gate(1, state.c), z = activations_[1].of(node_, part(sums, 3));
    V cell = c_.add(c_.mul(f, state.c), c_.mul(i, z));
    if (clip_) cell = c_.clip(cell, -*clip_, *clip_);
    return {c_.mul(gate(2, cell), activations_[2].of(node_, cell)), cell};
  }

  CellState gru_step(const CellWeights& d, V inputs, const CellState& state) {
    const auto rows = [&](V of, int64_t index) { return c_.slice(of, 0, hidden_ * index, hidden_); };
    const auto past = [&](V h, int64_t index) {
      const V sum = c_.matmul(h, rows(d.r, index), true);
      return d.r_bias == ir::kAbsent ? sum : c_.add(sum, rows(d.r_bias, index));
    };
    const V r = activations_[0].of(node_, c_.add(part(inputs, 0), past(state.h, 0)));
    const V z = activations_[0].of(node_, c_.add(part(inputs, 2), past(state.h, 2)));
    const V kept = is_late_ ? c_.mul(r, past(state.h, 1)) : past(c_.mul(r, state.h), 1);
    const V next = activations_[1].of(node_, c_.add(part(inputs, 1), kept));
    return {c_.add(c_.mul(c_.sub(c_.number(z, 1), z), next), c_.mul(z, state.h))};
  }

  /// Gates, or peepholes, as the host step has them: z, r, h and i, o, f, c.
  V ordered(V rows, const std::vector<int64_t>& order) {
    if (rows == ir::kAbsent || order.size() == 1) return rows;
    std::vector<V> parts;
    for (const int64_t gate : order) parts.push_back(c_.slice(rows, 0, hidden_ * gate, hidden_));
    return c_.concat(parts, 0);
  }

  std::vector<int64_t> gate_order() const {
    if (kind_ == CellKind::kLstm) return {0, 2, 1, 3};
    return kind_ == CellKind::kGru ? std::vector<int64_t>{2, 0, 1} : std::vector<int64_t>{0};
  }

  /// [gates, panels, hidden, columns of a panel]
  V in_panels(V weights) {
    constexpr auto kColumns = static_cast<int64_t>(host_ops::kPanelColumns);
    const int64_t panels = (hidden_ + kColumns - 1) / kColumns, rest = panels * kColumns - hidden_;
    V x = c_.reshape(weights, {gates(), hidden_, hidden_});
    if (rest != 0) x = c_.concat({x, c_.filled(node_.dtype(x), {gates(), rest, hidden_}, 0)}, 1);
    return c_.transpose(c_.reshape(x, {gates(), panels, kColumns, hidden_}), {0, 1, 3, 2});
  }

  ir::Attrs host_attributes(const CellWeights& d) const {
    ir::Attrs attrs = {{"kind", std::string(kind_ == CellKind::kLstm  ? "lstm"
                                            : kind_ == CellKind::kGru ? "gru"
                                                                      : "rnn")},
                       {"reverse", int64_t{d.is_reverse}},
                       {"lengths", int64_t{0}},
                       {"peepholes", int64_t{d.peephole != ir::kAbsent}},
                       {"linear_before_reset", int64_t{is_late_}},
                       {"input_forget", int64_t{0}}};
    std::string names;
    for (size_t i = 0; i < activations_.size(); ++i) {
      names += (i == 0 ? "" : ",") + activations_[i].name;
      attrs.set("alpha" + std::to_string(i), activations_[i].alpha);
      attrs.set("beta" + std::to_string(i), activations_[i].beta);
    }
    attrs.set("activations", names);
    return attrs;
  }

  CellState on_host(const CellWeights& d, V x, const CellState& first, V& y) {
    const DType dtype = node_.dtype(x);
    const auto wide = [&](V value) { return c_.cast(value, DType::kFloat32); };
    V bias = ordered(d.bias, gate_order());
    const V late = ordered(d.r_bias, gate_order());
    // All biases are the inputs' but that which the reset gate applies to.
    if (late != ir::kAbsent) {
      const V early =
          c_.concat({c_.slice(late, 0, 0, hidden_ * 2), c_.filled(node_.dtype(late), {hidden_}, 0)}, 0);
      bias = bias == ir::kAbsent ? early : c_.add(bias, early);
    }
    std::vector<V> operands{wide(input_sums(x, ordered(d.w, gate_order()), bias)),
                            wide(in_panels(ordered(d.r, gate_order()))), wide(c_.unsqueeze(first.h, 0))};
    if (kind_ == CellKind::kLstm) operands.push_back(wide(c_.unsqueeze(first.c, 0)));
    if (d.peephole != ir::kAbsent) operands.push_back(wide(ordered(d.peephole, {0, 2, 1})));
    if (is_late_)
      operands.push_back(wide(late == ir::kAbsent ? c_.filled(dtype, {hidden_}, 0)
                                                  : c_.slice(late, 0, hidden_ * 2, hidden_)));
    std::vector<V> results = node_.add_many("recurrent", std::move(operands), host_attributes(d));
    for (V& result : results) result = c_.cast(result, dtype);
    y = results[0];
    return {c_.squeeze(results[1], 0), results.size() > 2 ? c_.squeeze(results[2], 0) : ir::kAbsent};
  }

  NodeContext& node_;
  Compose c_;
  CellKind kind_;
  std::vector<CellActivation> activations_;
  std::optional<double> clip_;
  bool is_late_ = false;
  int64_t hidden_ = 0;
};

/// The outputs of all steps, or of the one that runs last.
V shown_steps(NodeContext& node, V y, V last) {
  return node.flag("output_sequence", false) ? y : Compose(node).unsqueeze(last, 0);
}

bool is_reversed(NodeContext& node, const std::string& direction) {
  if (direction != "forward" && direction != "reverse")
    node.unsupported("direction", "\"" + direction + "\" is not implemented");
  return direction == "reverse";
}

/// `back`: of the second direction.
CellWeights lstm_weights(NodeContext& node, bool back) {
  CellWeights d{node.tensor(back ? "weight_ih_back" : "weight_ih"),
                node.tensor(back ? "weight_hh_back" : "weight_hh")};
  d.bias = node.optional_tensor(back ? "bias_back" : "bias");
  d.peephole = node.optional_tensor(back ? "peephole_back" : "peephole");
  d.is_reverse = back;
  return d;
}

}  // namespace

// States of both directions stand side by side.
void convert_lstm(NodeContext& node) {
  Compose c(node);
  Layer layer(node, CellKind::kLstm);
  const V x = node.tensor("x"), h = node.tensor("initial_h"), cell = node.tensor("initial_c");
  const std::string direction = node.text("direction", "forward");
  const int64_t count = direction == "bidirectional" ? 2 : 1;
  if (count == 1)
    for (const char* name : {"weight_ih_back", "weight_hh_back", "bias_back", "peephole_back"})
      node.skip(name);
  std::vector<V> outputs, last_h, last_c;
  for (int64_t side = 0; side < count; ++side) {
    CellWeights d = lstm_weights(node, side == 1);
    if (count == 1) d.is_reverse = is_reversed(node, direction);
    if (node.rank(d.r) != 2) node.invalid("weights of shape " + to_string(node.shape(d.r)));
    const ir::SymInt hidden = node.shape(d.r)[1];
    const auto own = [&](V states) { return c.slice(states, 1, hidden * side, hidden); };
    V y = ir::kAbsent;
    const CellState last = layer.run(d, x, {own(h), own(cell)}, y);
    outputs.push_back(shown_steps(node, y, last.h));
    last_h.push_back(last.h);
    last_c.push_back(last.c);
  }
  node.set_outputs({c.concat(outputs, 2), c.concat(last_h, 1), c.concat(last_c, 1)});
}

// Of a GRU that resets the state behind its product, input_bias is the inputs' and bias the states'.
void convert_gru(NodeContext& node) {
  Layer layer(node, CellKind::kGru);
  CellWeights d{node.tensor("weight_ih"), node.tensor("weight_hh")};
  const V bias = node.optional_tensor("bias"), input_bias = node.optional_tensor("input_bias");
  if (layer.is_late()) {
    d.bias = input_bias;
    d.r_bias = bias;
  } else {
    d.bias = bias == ir::kAbsent         ? input_bias
             : input_bias == ir::kAbsent ? bias
                                         : Compose(node).add(bias, input_bias);
  }
  d.is_reverse = is_reversed(node, node.text("direction", "forward"));
  V y = ir::kAbsent;
  const CellState last = layer.run(d, node.tensor("x"), {node.tensor("initial_h")}, y);
  node.set_outputs({shown_steps(node, y, last.h), last.h});
}

void convert_rnn(NodeContext& node) {
  Layer layer(node, CellKind::kRnn);
  CellWeights d{node.tensor("weight_ih"), node.tensor("weight_hh")};
  d.bias = node.optional_tensor("bias");
  d.is_reverse = is_reversed(node, node.text("direction", "forward"));
  V y = ir::kAbsent;
  const CellState last = layer.run(d, node.tensor("x"), {node.tensor("initial_h")}, y);
  node.set_outputs({shown_steps(node, y, last.h), last.h});
}

}  // namespace tensormill::frontend::coreml
