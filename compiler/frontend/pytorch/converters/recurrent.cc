// LSTM, GRU and RNN, and their cells. A short sequence of known length is unrolled into kernels, any other is
// a host step for each direction. Gates stand in torch's order: i, f, g, o and r, z, n.
#include <algorithm>

#include "compiler/build/numbers/unrolled.h"
#include "compiler/frontend/pytorch/converters/helpers.h"
#include "runtime/host_ops/recurrent_math.h"

namespace tensormill::frontend::pytorch {

namespace {

/// Steps that are unrolled into kernels, whose compile takes ever longer.
constexpr int64_t kMostUnrolled = 256;

enum class CellKind : uint8_t { kRnn, kGru, kLstm };

/// One direction of a layer.
struct Direction {
  V w, r;  ///< [gates*hidden, input], [gates*hidden, hidden or projected]
  V w_bias = ir::kAbsent, r_bias = ir::kAbsent;  ///< [gates*hidden]
  V projection = ir::kAbsent;                    ///< [projected, hidden]
  bool is_reverse = false;
};
struct State {
  V h, c = ir::kAbsent;
};

class Recurrence {
public:
  Recurrence(NodeContext& node, CellKind kind, bool is_relu)
      : node_(node), c_(node), kind_(kind), is_relu_(is_relu) {}

  int64_t gates() const { return kind_ == CellKind::kLstm ? 4 : kind_ == CellKind::kGru ? 3 : 1; }

  /// The next state; `inputs` is what the input gives to the gates, with its bias.
  State step(const Direction& d, V inputs, const State& state) {
    const V past = biased(c_.matmul(state.h, d.r, true), d.r_bias);
    hidden_ = floordiv(node_.shape(d.w)[0], gates());
    if (kind_ == CellKind::kRnn) return {c_.unary(is_relu_ ? "relu" : "tanh", c_.add(inputs, past))};
    if (kind_ == CellKind::kGru) {
      const V r = c_.unary("sigmoid", c_.add(part(inputs, 0), part(past, 0)));
      const V z = c_.unary("sigmoid", c_.add(part(inputs, 1), part(past, 1)));
      const V n = c_.unary("tanh", c_.add(part(inputs, 2), c_.mul(r, part(past, 2))));
      return {c_.add(c_.mul(c_.sub(c_.number(z, 1), z), n), c_.mul(z, state.h))};
    }
    const V sums = c_.add(inputs, past);
    const V i = c_.unary("sigmoid", part(sums, 0)), f = c_.unary("sigmoid", part(sums, 1));
    const V g = c_.unary("tanh", part(sums, 2)), o = c_.unary("sigmoid", part(sums, 3));
    const V cell = c_.add(c_.mul(f, state.c), c_.mul(i, g));
    const V h = c_.mul(o, c_.unary("tanh", cell));
    return {d.projection == ir::kAbsent ? h : c_.matmul(h, d.projection, true), cell};
  }

  /// x [steps, batch, input]; y [steps, batch, hidden].
  State run(const Direction& d, V x, const State& first, V& y) {
    const ir::SymShape s = node_.shape(x);
    const bool is_short = s[0].is_constant() && s[0].hint() <= kMostUnrolled && s[0].hint() > 0;
    if (is_short) return unrolled(d, x, first, y);
    if (d.projection != ir::kAbsent) {
      if (!s[0].is_constant())
        node_.unsupported("params", "projections over a free number of steps are not implemented");
      return unrolled(d, x, first, y);
    }
    return on_host(d, x, first, y);
  }

  V input_sums(const Direction& d, V x, V bias) {
    const ir::SymShape s = node_.shape(x);
    const V rows = biased(c_.matmul(c_.reshape(x, {s[0] * s[1], s[2]}), d.w, true), bias);
    return c_.reshape(rows, {s[0], s[1], node_.shape(d.w)[0]});
  }

private:
  V biased(V x, V bias) { return bias == ir::kAbsent ? x : c_.add(x, bias); }
  V part(V x, int64_t index) { return c_.slice(x, node_.rank(x) - 1, hidden_ * index, hidden_); }

  State unrolled(const Direction& d, V x, const State& first, V& y) {
    State state = first;
    y = build::unrolled_steps(c_, input_sums(d, x, d.w_bias), d.is_reverse, state,
                              [&](V inputs, const State& before) { return step(d, inputs, before); });
    return state;
  }

  /// Gates as the host step has them: z, r, h and i, o, f, c.
  V ordered(V rows) {
    if (kind_ == CellKind::kRnn || rows == ir::kAbsent) return rows;
    const std::vector<int64_t> order =
        kind_ == CellKind::kGru ? std::vector<int64_t>{1, 0, 2} : std::vector<int64_t>{0, 3, 1, 2};
    std::vector<V> parts;
    for (const int64_t gate : order) parts.push_back(c_.slice(rows, 0, hidden_ * gate, hidden_));
    return c_.concat(parts, 0);
  }

  /// [gates, panels, hidden, columns of a panel]
  V in_panels(V weights) {
    constexpr auto kColumns = static_cast<int64_t>(host_ops::kPanelColumns);
    const int64_t hidden = hidden_, panels = (hidden + kColumns - 1) / kColumns,
                  rest = panels * kColumns - hidden;
    V x = c_.reshape(weights, {gates(), hidden, hidden});
    if (rest != 0) x = c_.concat({x, c_.filled(node_.dtype(x), {gates(), rest, hidden}, 0)}, 1);
    return c_.transpose(c_.reshape(x, {gates(), panels, kColumns, hidden}), {0, 1, 3, 2});
  }

  ir::Attrs host_attributes(bool is_reverse) const {
    const std::string kind = kind_ == CellKind::kLstm ? "lstm" : kind_ == CellKind::kGru ? "gru" : "rnn";
    ir::Attrs attrs = {{"kind", kind},
                       {"reverse", int64_t{is_reverse}},
                       {"lengths", int64_t{0}},
                       {"peepholes", int64_t{0}},
                       {"linear_before_reset", int64_t{kind_ == CellKind::kGru}},
                       {"input_forget", int64_t{0}},
                       {"activations", std::string(kind_ == CellKind::kLstm  ? "Sigmoid,Tanh,Tanh"
                                                   : kind_ == CellKind::kGru ? "Sigmoid,Tanh"
                                                   : is_relu_                ? "Relu"
                                                                             : "Tanh")}};
    for (const char* name : {"alpha0", "beta0", "alpha1", "beta1", "alpha2", "beta2"}) {
      const bool is_there = name[std::string_view(name).size() - 1] - '0' < (kind_ == CellKind::kLstm  ? 3
                                                                             : kind_ == CellKind::kGru ? 2
                                                                                                       : 1);
      if (is_there) attrs.set(name, 1.0);
    }
    return attrs;
  }

  State on_host(const Direction& d, V x, const State& first, V& y) {
    hidden_ = floordiv(node_.shape(d.w)[0], gates());
    const DType dtype = node_.dtype(x), wide = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
    const bool is_gru = kind_ == CellKind::kGru;
    Direction own = d;
    own.w = ordered(d.w);
    V bias = ordered(d.w_bias);
    const V late = ordered(d.r_bias);
    // All biases are the inputs' but that which the gate r applies to.
    if (late != ir::kAbsent) {
      V early = late;
      if (is_gru) early = c_.concat({c_.slice(late, 0, 0, hidden_ * 2), c_.filled(dtype, {hidden_}, 0)}, 0);
      bias = c_.add(bias, early);
    }
    std::vector<V> operands{c_.cast(input_sums(own, x, bias), wide), c_.cast(in_panels(ordered(d.r)), wide),
                            c_.cast(c_.unsqueeze(first.h, 0), wide)};
    if (kind_ == CellKind::kLstm) operands.push_back(c_.cast(c_.unsqueeze(first.c, 0), wide));
    if (is_gru)
      operands.push_back(c_.cast(
          late == ir::kAbsent ? c_.filled(dtype, {hidden_}, 0) : c_.slice(late, 0, hidden_ * 2, hidden_),
          wide));
    std::vector<V> results = node_.add_many("recurrent", std::move(operands), host_attributes(d.is_reverse));
    for (V& result : results) result = c_.cast(result, dtype);
    y = results[0];
    return {c_.squeeze(results[1], 0), results.size() > 2 ? c_.squeeze(results[2], 0) : ir::kAbsent};
  }

  NodeContext& node_;
  Compose c_;
  CellKind kind_;
  bool is_relu_;
  ir::SymInt hidden_;
};

CellKind kind_of(const NodeContext& node) {
  if (node.op().starts_with("lstm")) return CellKind::kLstm;
  return node.op().starts_with("gru") ? CellKind::kGru : CellKind::kRnn;
}

}  // namespace

void convert_recurrent(NodeContext& node) {
  Compose c(node);
  const CellKind kind = kind_of(node);
  Recurrence recurrence(node, kind, node.op() == "rnn_relu");
  if (node.flag("train") && node.real("dropout") != 0)
    node.unsupported("train", "dropout of training is not implemented");
  static_cast<void>(node.real("dropout"));
  const bool has_biases = node.flag("has_biases"), is_batch_first = node.flag("batch_first");
  const int64_t layers = node.integer("num_layers"), directions = node.flag("bidirectional") ? 2 : 1;
  const ir::CheckedList<V> params = node.tensors("params");
  const ir::CheckedList<V> states =
      kind == CellKind::kLstm ? node.tensors("hx") : std::vector<V>{node.tensor("hx")};
  const size_t rows = has_biases ? 4 : 2;
  if (layers < 1 || layers > 1024) node.invalid(std::to_string(layers) + " layers");
  const auto count = static_cast<size_t>(layers * directions);
  const size_t each = params.size() / count;
  if (params.size() != each * count || (each != rows && each != rows + 1) ||
      states.size() != (kind == CellKind::kLstm ? 2U : 1U))
    node.invalid(std::to_string(params.size()) + " weights for " + std::to_string(count) + " directions");
  V x = node.tensor("input");
  if (node.rank(x) != 3) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  if (is_batch_first) x = c.transpose(x, {1, 0, 2});
  std::vector<V> last_h, last_c;
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::vector<V> outputs;
    for (int64_t side = 0; side < directions; ++side) {
      const auto index = static_cast<size_t>(layer * directions + side);
      const V* own = params.data() + index * each;
      Direction d{own[0], own[1]};
      if (node.rank(d.w) != 2 || node.rank(d.r) != 2)
        node.invalid("weights of shapes " + to_string(node.shape(d.w)) + " and " +
                     to_string(node.shape(d.r)));
      if (has_biases) {
        d.w_bias = c.expand(own[2], {node.shape(d.w)[0]});
        d.r_bias = c.expand(own[3], {node.shape(d.w)[0]});
      }
      if (each > rows) d.projection = own[rows];
      d.is_reverse = side == 1;
      const auto initial = [&](V all) {
        return c.squeeze(c.slice(all, 0, static_cast<int64_t>(index), 1), 0);
      };
      State state{initial(states[0]), kind == CellKind::kLstm ? initial(states[1]) : ir::kAbsent};
      V y = ir::kAbsent;
      state = recurrence.run(d, x, state, y);
      outputs.push_back(y);
      last_h.push_back(c.unsqueeze(state.h, 0));
      if (kind == CellKind::kLstm) last_c.push_back(c.unsqueeze(state.c, 0));
    }
    x = c.concat(outputs, 2);
  }
  node.set_output(0, is_batch_first ? c.transpose(x, {1, 0, 2}) : x);
  node.set_output(1, c.concat(last_h, 0));
  if (kind == CellKind::kLstm) node.set_output(2, c.concat(last_c, 0));
}

void convert_recurrent_cell(NodeContext& node) {
  Compose c(node);
  const CellKind kind = kind_of(node);
  Recurrence recurrence(node, kind, node.op().find("relu") != std::string::npos);
  const ir::CheckedList<V> states =
      kind == CellKind::kLstm ? node.tensors("hx") : std::vector<V>{node.tensor("hx")};
  if (states.size() != (kind == CellKind::kLstm ? 2U : 1U)) node.invalid("states are missing");
  Direction d{node.tensor("w_ih"), node.tensor("w_hh")};
  d.w_bias = node.optional_tensor("b_ih");
  d.r_bias = node.optional_tensor("b_hh");
  V sums = c.matmul(node.tensor("input"), d.w, true);
  if (d.w_bias != ir::kAbsent) sums = c.add(sums, d.w_bias);
  const State next = recurrence.step(d, sums, {states[0], kind == CellKind::kLstm ? states[1] : ir::kAbsent});
  node.set_output(0, next.h);
  if (kind == CellKind::kLstm) node.set_output(1, next.c);
}

}  // namespace tensormill::frontend::pytorch
