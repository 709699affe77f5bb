// RNN, GRU and LSTM, unrolled over the sequence: its length is known. Gates stand in the weights in ONNX's
// order.
#include <algorithm>
#include <array>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

constexpr int64_t kMaxSteps = 4096;

struct Activation {
  std::string name;
  double alpha;
  double beta;
};

/// The node's sizes and operands; X is [steps, batch, input].
struct Layer {
  int64_t steps, batch, hidden, directions, gates;
  bool batchwise;
  V x, lengths = ir::kAbsent;
};

/// The operands of one direction, without their direction axis.
struct Direction {
  V w, r;                                        ///< [gates*hidden, input or hidden]
  V w_bias = ir::kAbsent, r_bias = ir::kAbsent;  ///< [gates*hidden]
  V h, c = ir::kAbsent;                          ///< initial states, [batch, hidden]
  V peephole = ir::kAbsent;                      ///< [3*hidden]
  std::vector<Activation> activations;
  bool reverse = false;
};

struct State {
  V h, c = ir::kAbsent;
};

V apply(NodeContext& context, const Activation& f, V x) {
  Compose c(context);
  if (f.name == "Sigmoid") return c.unary("sigmoid", x);
  if (f.name == "Tanh") return c.unary("tanh", x);
  if (f.name == "Relu") return c.unary("relu", x);
  if (f.name == "Softsign") return c.unary("softsign", x);
  if (f.name == "Softplus") return c.unary("softplus", x);
  if (f.name == "Affine") return c.plus(c.times(x, f.alpha), f.beta);
  if (f.name == "LeakyRelu") return context.add("leaky_relu", {x}, {{"alpha", f.alpha}});
  if (f.name == "Elu") return context.add("elu", {x}, {{"alpha", f.alpha}});
  if (f.name == "HardSigmoid")
    return context.add("hard_sigmoid", {x}, {{"alpha", f.alpha}, {"beta", f.beta}});
  if (f.name == "ScaledTanh") return c.times(c.unary("tanh", c.times(x, f.beta)), f.alpha);
  if (f.name == "ThresholdedRelu")
    return c.where(c.binary("greater", x, c.number(x, f.alpha)), x, c.number(x, 0));
  context.unsupported("activations", "value \"" + f.name + "\" is not implemented");
}

/// Names and parameters as given, else the operator's, for each direction.
std::vector<Activation> activations_of(NodeContext& context, const std::vector<std::string>& usual,
                                       int64_t directions) {
  std::vector<std::string> names;
  if (const AttributeProto* attribute = context.node().find("activations"))
    names.assign(attribute->strings.begin(), attribute->strings.end());
  while (names.size() < usual.size() * static_cast<size_t>(directions)) {
    const size_t at = names.size() % usual.size();
    names.push_back(usual[at]);
  }
  const AttributeProto* alphas = context.node().find("activation_alpha");
  const AttributeProto* betas = context.node().find("activation_beta");
  std::vector<Activation> result;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    double alpha = name == "LeakyRelu"     ? 0.01
                   : name == "HardSigmoid" ? 0.2
                                           : 1,
           beta = name == "HardSigmoid" ? 0.5
                  : name == "Affine"    ? 0
                                        : 1;
    if (alphas != nullptr && i < alphas->floats.size()) alpha = static_cast<double>(alphas->floats[i]);
    if (betas != nullptr && i < betas->floats.size()) beta = static_cast<double>(betas->floats[i]);
    result.push_back({name, alpha, beta});
  }
  return result;
}

V clipped(NodeContext& context, V x) {
  if (!context.has_attr("clip")) return x;
  const double bound = context.float_attr("clip", 0);
  return Compose(context).clip(x, -bound, bound);
}

/// Part number `index` of the last axis, in units of the hidden size.
V part(Compose& c, V x, int64_t index, int64_t hidden) {
  return c.slice(x, static_cast<int64_t>(c.shape(x).size()) - 1, index * hidden, hidden);
}

V with_bias(Compose& c, V x, V bias) { return bias == ir::kAbsent ? x : c.add(x, bias); }

State rnn_step(NodeContext& context, const Layer&, const Direction& d, V inputs, const State& state) {
  Compose c(context);
  const V sum = c.add(inputs, with_bias(c, c.matmul(state.h, d.r, true), d.r_bias));
  return {apply(context, d.activations[0], clipped(context, sum)), ir::kAbsent};
}

// Gates z, r, h.
State gru_step(NodeContext& context, const Layer& layer, const Direction& d, V inputs, const State& state) {
  Compose c(context);
  const int64_t n = layer.hidden;
  const auto recurrent = [&](V h, int64_t first, int64_t count) {
    const V weights = c.slice(d.r, 0, first * n, count * n);
    const V bias = d.r_bias == ir::kAbsent ? d.r_bias : c.slice(d.r_bias, 0, first * n, count * n);
    return with_bias(c, c.matmul(h, weights, true), bias);
  };
  const V both = recurrent(state.h, 0, 2);
  const auto gate = [&](int64_t index) {
    const V sum = c.add(part(c, inputs, index, n), part(c, both, index, n));
    return apply(context, d.activations[0], clipped(context, sum));
  };
  const V z = gate(0), r = gate(1);
  const bool before = context.int_attr("linear_before_reset", 0) != 0;
  const V past = before ? c.mul(r, recurrent(state.h, 2, 1)) : recurrent(c.mul(r, state.h), 2, 1);
  const V candidate = apply(context, d.activations[1], clipped(context, c.add(part(c, inputs, 2, n), past)));
  const V kept = c.mul(z, state.h);
  return {c.add(c.mul(c.sub(c.number(z, 1), z), candidate), kept), ir::kAbsent};
}

// Gates i, o, f, c; peepholes i, o, f.
State lstm_step(NodeContext& context, const Layer& layer, const Direction& d, V inputs, const State& state) {
  Compose c(context);
  const int64_t n = layer.hidden;
  const V sums = c.add(inputs, with_bias(c, c.matmul(state.h, d.r, true), d.r_bias));
  const auto gate = [&](int64_t index, int64_t peephole, V cell, const Activation& f) {
    V sum = part(c, sums, index, n);
    if (d.peephole != ir::kAbsent && peephole >= 0)
      sum = c.add(sum, c.mul(part(c, d.peephole, peephole, n), cell));
    return apply(context, f, clipped(context, sum));
  };
  const V i = gate(0, 0, state.c, d.activations[0]);
  const V f = context.int_attr("input_forget", 0) != 0 ? c.sub(c.number(i, 1), i)
                                                       : gate(2, 2, state.c, d.activations[0]);
  const V candidate = gate(3, -1, state.c, d.activations[1]);
  const V cell = c.add(c.mul(f, state.c), c.mul(i, candidate));
  const V o = gate(1, 1, cell, d.activations[0]);
  return {c.mul(o, apply(context, d.activations[2], cell)), cell};
}

using Step = State (*)(NodeContext&, const Layer&, const Direction&, V, const State&);

/// The outputs of one direction: [steps] values of [batch, hidden], 0 past a row's length, and the last
/// state.
State run(NodeContext& context, const Layer& layer, const Direction& d, Step step, std::vector<V>& outputs) {
  Compose c(context);
  State state{d.h, d.c};
  outputs.assign(static_cast<size_t>(layer.steps), ir::kAbsent);
  const int64_t features = c.shape(layer.x)[2];
  const V flat = c.reshape(layer.x, {layer.steps * layer.batch, features});
  const V all = c.reshape(with_bias(c, c.matmul(flat, d.w, true), d.w_bias),
                          {layer.steps, layer.batch, layer.gates * layer.hidden});
  for (int64_t count = 0; count < layer.steps; ++count) {
    const int64_t t = d.reverse ? layer.steps - 1 - count : count;
    const State next = step(context, layer, d, c.squeeze(c.slice(all, 0, t, 1), 0), state);
    V output = next.h;
    if (layer.lengths == ir::kAbsent) {
      state = next;
    } else {
      const V runs = c.binary("less", c.ints({t}, {1, 1}), layer.lengths);
      output = c.where(runs, next.h, c.number(next.h, 0));
      state.h = c.where(runs, next.h, state.h);
      if (next.c != ir::kAbsent) state.c = c.where(runs, next.c, state.c);
    }
    outputs[static_cast<size_t>(t)] = output;
  }
  return state;
}

V direction_of(Compose& c, V x, int64_t index) {
  return x == ir::kAbsent ? x : c.squeeze(c.slice(x, 0, index, 1), 0);
}

Direction read_direction(NodeContext& context, const Layer& layer, int64_t index,
                         const std::vector<Activation>& activations, size_t per_direction) {
  Compose c(context);
  Direction d;
  d.w = direction_of(c, context.input(1), index);
  d.r = direction_of(c, context.input(2), index);
  if (context.has_input(3)) {
    const V bias = direction_of(c, context.input(3), index);
    d.w_bias = c.slice(bias, 0, 0, layer.gates * layer.hidden);
    d.r_bias = c.slice(bias, 0, layer.gates * layer.hidden, layer.gates * layer.hidden);
  }
  const auto initial = [&](size_t operand) {
    if (!context.has_input(operand)) return c.filled(c.dtype(layer.x), {layer.batch, layer.hidden}, 0);
    const V all = layer.batchwise ? c.transpose(context.input(operand), {1, 0, 2}) : context.input(operand);
    return direction_of(c, all, index);
  };
  d.h = initial(5);
  if (layer.gates == 4) {
    d.c = initial(6);
    d.peephole = direction_of(c, context.optional_input(7), index);
  }
  const auto first = activations.begin() + index * static_cast<int64_t>(per_direction);
  d.activations.assign(first, first + static_cast<int64_t>(per_direction));
  d.reverse = index == 1 || context.string_attr("direction", "forward") == "reverse";
  return d;
}

Layer read_layer(NodeContext& context, int64_t gates) {
  Compose c(context);
  Layer layer{};
  layer.gates = gates;
  layer.batchwise = context.int_attr("layout", 0) != 0;
  layer.x = layer.batchwise ? c.transpose(context.input(0), {1, 0, 2}) : context.input(0);
  const Shape x = c.shape(layer.x), r = c.shape(context.input(2));
  if (x.size() != 3 || r.size() != 3)
    context.invalid("X has shape " + to_string(x) + ", R " + to_string(r) + ", expected rank 3");
  layer.steps = x[0];
  layer.batch = x[1];
  layer.hidden = r[2];
  const std::string direction = context.string_attr("direction", "forward");
  layer.directions = direction == "bidirectional" ? 2 : 1;
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    context.invalid("direction is \"" + direction + "\"");
  if (r[0] != layer.directions || r[1] != gates * layer.hidden)
    context.invalid("R has shape " + to_string(r) + ", expected [" + std::to_string(layer.directions) + "," +
                    std::to_string(gates * layer.hidden) + "," + std::to_string(layer.hidden) + "]");
  if (layer.steps > kMaxSteps)
    context.unsupported("X",
                        "sequences of more than " + std::to_string(kMaxSteps) + " steps are not implemented");
  if (context.has_input(4))
    layer.lengths = c.reshape(c.cast(context.input(4), DType::kInt64), {layer.batch, 1});
  return layer;
}

/// States of all directions as [directions, batch, hidden] (batchwise: batch first).
V stacked(Compose& c, const Layer& layer, const std::vector<V>& states) {
  std::vector<V> parts;
  for (V state : states) parts.push_back(c.unsqueeze(state, layer.batchwise ? 1 : 0));
  return c.concat(std::move(parts), layer.batchwise ? 1 : 0);
}

void convert_recurrent(NodeContext& context, int64_t gates, const std::vector<std::string>& usual,
                       Step step) {
  Compose c(context);
  const Layer layer = read_layer(context, gates);
  const std::vector<Activation> activations = activations_of(context, usual, layer.directions);
  std::vector<std::vector<V>> outputs(static_cast<size_t>(layer.directions));
  std::vector<V> last_h, last_c;
  for (int64_t index = 0; index < layer.directions; ++index) {
    const Direction d = read_direction(context, layer, index, activations, usual.size());
    const State last = run(context, layer, d, step, outputs[static_cast<size_t>(index)]);
    last_h.push_back(last.h);
    last_c.push_back(last.c);
  }
  // Y: [steps, directions, batch, hidden], batchwise [batch, steps, directions, hidden].
  std::vector<V> rows;
  for (size_t t = 0; t < static_cast<size_t>(layer.steps); ++t) {
    std::vector<V> parts;
    for (const std::vector<V>& direction : outputs)
      parts.push_back(c.unsqueeze(direction[t], layer.batchwise ? 1 : 0));
    const int64_t direction_axis = layer.batchwise ? 1 : 0;
    rows.push_back(c.unsqueeze(c.concat(std::move(parts), direction_axis), layer.batchwise ? 1 : 0));
  }
  const V y = rows.empty() ? c.filled(c.dtype(layer.x),
                                      layer.batchwise ? Shape{layer.batch, 0, layer.directions, layer.hidden}
                                                      : Shape{0, layer.directions, layer.batch, layer.hidden},
                                      0)
                           : c.concat(std::move(rows), layer.batchwise ? 1 : 0);
  context.set_output(0, y);
  context.set_output(1, stacked(c, layer, last_h));
  if (gates == 4) context.set_output(2, stacked(c, layer, last_c));
}

}  // namespace

void convert_rnn(NodeContext& context) { convert_recurrent(context, 1, {"Tanh"}, &rnn_step); }
void convert_gru(NodeContext& context) { convert_recurrent(context, 3, {"Sigmoid", "Tanh"}, &gru_step); }
void convert_lstm(NodeContext& context) {
  convert_recurrent(context, 4, {"Sigmoid", "Tanh", "Tanh"}, &lstm_step);
}

}  // namespace tensormill::frontend::onnx
