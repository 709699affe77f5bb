// RNN, GRU and LSTM. A short sequence of known length is unrolled into kernels; one of a free length and
// a long one get a host step for each direction. Gates stand in the weights in ONNX's order.
#include <algorithm>
#include <array>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "runtime/host_ops/recurrent_math.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// Steps that are unrolled into kernels. A host step takes as long for one row and a quarter longer for 16,
/// while the compile of kernels takes ten times as long at 500 steps and a hundred times at 4,000.
constexpr int64_t kMostUnrolled = 256;

struct Activation {
  std::string name;
  double alpha;
  double beta;
};

/// An extent that an operand is to have, and what says so.
struct Extent {
  ir::SymInt value;
  const char* by;
};

/// The first axis that has another extent is named, each by a message of its own.
void check_operand(NodeContext& context, size_t operand, const char* name,
                   const std::vector<Extent>& extents) {
  if (!context.has_input(operand)) return;
  const ir::SymShape shape = context.type(context.input(operand)).shape;
  ir::SymShape expected;
  for (const Extent& extent : extents) expected.push_back(extent.value);
  const std::string found =
      std::string(name) + " has shape " + to_string(shape) + ", expected " + to_string(expected);
  if (shape.size() != extents.size()) context.invalid(found);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!demand(ir::Relation::kEqual, shape[i], expected[i])) context.invalid(found + " by " + extents[i].by);
  }
}

/// The node's sizes and operands; X is [steps, batch, input].
struct Layer {
  std::string kind;  ///< attribute of the host step
  ir::SymInt steps, batch;
  int64_t hidden, directions, gates;
  bool batchwise;
  V x, lengths = ir::kAbsent;
};

/// The operands of one direction, without their direction axis.
struct Direction {
  V w, r;                                        ///< [gates*hidden, input or hidden]
  V r_resets, r_candidate;                       ///< of a GRU: [2*hidden, hidden], [hidden, hidden]
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
V bias_of(Compose& c, V bias, int64_t start, int64_t count) {
  return bias == ir::kAbsent ? bias : c.slice(bias, 0, start, count);
}

/// Whether a GRU multiplies the state by its weights before the gate r applies.
bool resets_late(const NodeContext& context) { return context.int_attr("linear_before_reset", 0) != 0; }

State rnn_step(NodeContext& context, const Layer&, const Direction& d, V inputs, const State& state) {
  Compose c(context);
  const V sum = c.add(inputs, with_bias(c, c.matmul(state.h, d.r, true), d.r_bias));
  return {apply(context, d.activations[0], clipped(context, sum)), ir::kAbsent};
}

// Gates z, r, h.
State gru_step(NodeContext& context, const Layer& layer, const Direction& d, V inputs, const State& state) {
  Compose c(context);
  const int64_t n = layer.hidden;
  const V both = with_bias(c, c.matmul(state.h, d.r_resets, true), bias_of(c, d.r_bias, 0, 2 * n));
  const auto gate = [&](int64_t index) {
    const V sum = c.add(part(c, inputs, index, n), part(c, both, index, n));
    return apply(context, d.activations[0], clipped(context, sum));
  };
  const V z = gate(0), r = gate(1);
  const auto candidate_of = [&](V h) {
    return with_bias(c, c.matmul(h, d.r_candidate, true), bias_of(c, d.r_bias, 2 * n, n));
  };
  const V past = resets_late(context) ? c.mul(r, candidate_of(state.h)) : candidate_of(c.mul(r, state.h));
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

/// What the inputs give to the gates: [steps, batch, gates*hidden].
V input_sums(NodeContext& context, const Layer& layer, const Direction& d, V bias) {
  Compose c(context);
  // One product of many rows.
  const V x = c.reshape(layer.x, {layer.steps * layer.batch, c.shape(layer.x)[2]});
  return c.reshape(with_bias(c, c.matmul(x, c.transpose(d.w, {1, 0})), bias),
                   {layer.steps, layer.batch, layer.gates * layer.hidden});
}

/// The outputs of one direction: [steps] values of [batch, hidden], 0 past a row's length, and the last
/// state.
State unroll(NodeContext& context, const Layer& layer, const Direction& d, Step step,
             std::vector<V>& outputs) {
  Compose c(context);
  State state{d.h, d.c};
  const int64_t steps = layer.steps;
  outputs.assign(static_cast<size_t>(steps), ir::kAbsent);
  const V all = input_sums(context, layer, d, d.w_bias);
  for (int64_t count = 0; count < steps; ++count) {
    const int64_t t = d.reverse ? steps - 1 - count : count;
    const State next = step(context, layer, d, c.squeeze(c.slice(all, 0, t, 1), 0), state);
    V output = next.h;
    if (layer.lengths == ir::kAbsent) {
      state = next;
    } else {
      const V runs = c.binary("less", c.dims({t}, {1, 1}), layer.lengths);
      output = c.where(runs, next.h, c.number(next.h, 0));
      state.h = c.where(runs, next.h, state.h);
      if (next.c != ir::kAbsent) state.c = c.where(runs, next.c, state.c);
    }
    outputs[static_cast<size_t>(t)] = output;
  }
  return state;
}

/// Recurrence weights as the host step reads them: [gates, panels, hidden, columns of a panel].
V in_panels(NodeContext& context, const Layer& layer, V weights) {
  Compose c(context);
  constexpr auto kColumns = static_cast<int64_t>(host_ops::kPanelColumns);
  const int64_t panels = (layer.hidden + kColumns - 1) / kColumns, rest = panels * kColumns - layer.hidden;
  V x = c.reshape(weights, {layer.gates, layer.hidden, layer.hidden});
  if (rest != 0) x = c.concat({x, c.filled(c.dtype(x), {layer.gates, rest, layer.hidden}, 0)}, 1);
  return c.transpose(c.reshape(x, {layer.gates, panels, kColumns, layer.hidden}), {0, 1, 3, 2});
}

ir::Attrs host_attributes(const NodeContext& context, const Layer& layer, const Direction& d) {
  ir::Attrs attrs = {
      {"kind", layer.kind},
      {"reverse", int64_t{d.reverse}},
      {"lengths", int64_t{layer.lengths != ir::kAbsent}},
      {"peepholes", int64_t{d.peephole != ir::kAbsent}},
      {"linear_before_reset", int64_t{layer.kind == "gru" && resets_late(context)}},
      {"input_forget", int64_t{layer.kind == "lstm" && context.int_attr("input_forget", 0) != 0}}};
  std::string names;
  for (size_t i = 0; i < d.activations.size(); ++i) {
    names += (i == 0 ? "" : ",") + d.activations[i].name;
    attrs.set("alpha" + std::to_string(i), d.activations[i].alpha);
    attrs.set("beta" + std::to_string(i), d.activations[i].beta);
  }
  attrs.set("activations", names);
  if (context.has_attr("clip")) attrs.set("clip", context.float_attr("clip", 0));
  return attrs;
}

/// The same by a host step; `y` is [steps, batch, hidden].
State run_on_host(NodeContext& context, const Layer& layer, const Direction& d, V& y) {
  Compose c(context);
  const DType dtype = c.dtype(layer.x), wide = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  const bool is_late = layer.kind == "gru" && resets_late(context);
  // All biases are the inputs' but that which the gate r applies to.
  V bias = d.w_bias;
  if (d.r_bias != ir::kAbsent) {
    const int64_t early = is_late ? 2 * layer.hidden : layer.gates * layer.hidden;
    V added = c.slice(d.r_bias, 0, 0, early);
    if (is_late) added = c.concat({added, c.filled(dtype, {layer.hidden}, 0)}, 0);
    bias = c.add(bias, added);
  }
  std::vector<V> operands = {c.cast(input_sums(context, layer, d, bias), wide),
                             c.cast(in_panels(context, layer, d.r), wide), c.cast(c.unsqueeze(d.h, 0), wide)};
  if (d.c != ir::kAbsent) operands.push_back(c.cast(c.unsqueeze(d.c, 0), wide));
  if (d.peephole != ir::kAbsent) operands.push_back(c.cast(d.peephole, wide));
  if (is_late) {
    const V late = d.r_bias == ir::kAbsent ? c.filled(dtype, {layer.hidden}, 0)
                                           : c.slice(d.r_bias, 0, 2 * layer.hidden, layer.hidden);
    operands.push_back(c.cast(late, wide));
  }
  if (layer.lengths != ir::kAbsent) operands.push_back(c.reshape(layer.lengths, {layer.batch}));
  std::vector<V> results =
      context.add_many("recurrent", std::move(operands), host_attributes(context, layer, d));
  for (V& result : results) result = c.cast(result, dtype);
  y = results[0];
  return {c.squeeze(results[1], 0), results.size() > 2 ? c.squeeze(results[2], 0) : ir::kAbsent};
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
  if (layer.gates == 3) {
    d.r_resets = c.slice(d.r, 0, 0, 2 * layer.hidden);
    d.r_candidate = c.slice(d.r, 0, 2 * layer.hidden, layer.hidden);
  }
  if (context.has_input(3)) {
    const V bias = direction_of(c, context.input(3), index);
    d.w_bias = c.slice(bias, 0, 0, layer.gates * layer.hidden);
    d.r_bias = c.slice(bias, 0, layer.gates * layer.hidden, layer.gates * layer.hidden);
  }
  const auto initial = [&](size_t operand) {
    if (!context.has_input(operand)) return c.filled(c.dtype(layer.x), {layer.batch, layer.hidden}, 0);
    const Extent directions{layer.directions, "directions"}, batch{layer.batch, "the batch"};
    check_operand(context, operand, operand == 5 ? "initial_h" : "initial_c",
                  {layer.batchwise ? batch : directions,
                   layer.batchwise ? directions : batch,
                   {layer.hidden, "hidden_size"}});
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
  context.require_bound_extents(context.input(0));
  Compose c(context);
  Layer layer{};
  layer.gates = gates;
  layer.kind = gates == 1 ? "rnn" : gates == 3 ? "gru" : "lstm";
  layer.batchwise = context.int_attr("layout", 0) != 0;
  layer.x = layer.batchwise ? c.transpose(context.input(0), {1, 0, 2}) : context.input(0);
  const ir::SymShape x = c.shape(layer.x), r = c.shape(context.input(2));
  if (x.size() != 3 || r.size() != 3)
    context.invalid("X has shape " + to_string(x) + ", R " + to_string(r) + ", expected rank 3");
  layer.steps = x[0];
  layer.batch = x[1];
  layer.hidden = context.has_attr("hidden_size") ? context.required_int("hidden_size") : int64_t{r[2]};
  const std::string direction = context.string_attr("direction", "forward");
  layer.directions = direction == "bidirectional" ? 2 : 1;
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    context.invalid("direction is \"" + direction + "\"");
  const Extent directions{layer.directions, "directions"}, hidden{layer.hidden, "hidden_size"},
      rows{gates * layer.hidden, "gates of hidden_size"};
  check_operand(context, 2, "R", {directions, rows, hidden});
  check_operand(context, 1, "W", {directions, rows, {x[2], "the columns of X"}});
  check_operand(context, 3, "B", {directions, {2 * rows.value, "two for each gate"}});
  if (gates == 4) check_operand(context, 7, "P", {directions, {3 * layer.hidden, "three gates"}});
  if (context.has_input(4)) {
    const V lengths = integers_within(context, context.input(4), c.dims({layer.steps}, {1}), "sequence_lens");
    layer.lengths = c.reshape(lengths, {layer.batch, 1});
  }
  return layer;
}

/// States of all directions as [directions, batch, hidden] (batchwise: batch first).
V stacked(Compose& c, const Layer& layer, const std::vector<V>& states) {
  std::vector<V> parts;
  for (V state : states) parts.push_back(c.unsqueeze(state, layer.batchwise ? 1 : 0));
  return c.concat(std::move(parts), layer.batchwise ? 1 : 0);
}

/// The outputs of all steps in a row: [steps, batch, hidden].
V in_a_row(Compose& c, const std::vector<V>& outputs) {
  std::vector<V> rows;
  for (const V output : outputs) rows.push_back(c.unsqueeze(output, 0));
  return c.concat(std::move(rows), 0);
}

void convert_recurrent(NodeContext& context, int64_t gates, const std::vector<std::string>& usual,
                       Step step) {
  Compose c(context);
  const Layer layer = read_layer(context, gates);
  const std::vector<Activation> activations = activations_of(context, usual, layer.directions);
  const bool is_unrolled =
      layer.steps.is_constant() && layer.steps.hint() > 0 && layer.steps.hint() <= kMostUnrolled;
  std::vector<V> all, last_h, last_c;
  for (int64_t index = 0; index < layer.directions; ++index) {
    const Direction d = read_direction(context, layer, index, activations, usual.size());
    V y = ir::kAbsent;
    std::vector<V> outputs;
    const State last =
        is_unrolled ? unroll(context, layer, d, step, outputs) : run_on_host(context, layer, d, y);
    if (is_unrolled) y = in_a_row(c, outputs);
    all.push_back(c.unsqueeze(y, 1));
    last_h.push_back(last.h);
    last_c.push_back(last.c);
  }
  // Y: [steps, directions, batch, hidden], batchwise [batch, steps, directions, hidden].
  const V y = c.concat(std::move(all), 1);
  context.set_output(0, layer.batchwise ? c.transpose(y, {2, 0, 1, 3}) : y);
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
