// Recurrent layers, step by step, and layers that run another one along the steps.
#include <algorithm>

#include "compiler/frontend/keras/converters/cells.h"
#include "compiler/frontend/keras/converters/windows.h"

namespace tensormill::frontend::keras {

namespace {

/// Steps that are unrolled into kernels.
constexpr int64_t kMostSteps = 1024;

/// Where the arguments of the call are: sequences, and the states to begin with.
struct Arguments {
  size_t sequences = 0;
  std::vector<size_t> states;
};

Arguments arguments_of(LayerContext& context) {
  Arguments arguments;
  const auto place = [&](const Json& json) -> std::optional<size_t> {
    if (json.is_object() && json.contains(kTensorMark)) return json.at(kTensorMark).get<size_t>();
    return std::nullopt;
  };
  const auto add_states = [&](const Json& json, size_t from) {
    if (const auto single = place(json)) arguments.states.push_back(*single);
    if (!json.is_array()) return;
    for (size_t i = from; i < json.size(); ++i) {
      const auto each = place(json[i]);
      if (!each) context.unsupported("argument initial_state", "what is no tensor is not implemented");
      arguments.states.push_back(*each);
    }
  };
  // Keras 2 writes states behind the sequences in one list.
  const Json& first = context.argument("sequences", 0);
  const Json& given = context.argument("initial_state", 1);
  if (first.is_array()) {
    if (first.empty()) context.invalid("it has no input");
    arguments.sequences = place(first[0]).value_or(0);
    add_states(first, 1);
  } else {
    arguments.sequences = place(first).value_or(0);
  }
  add_states(given, 0);
  return arguments;
}

/// The sequences of a call [batch,steps,features], and how they are gone over.
struct Sequences {
  V x;
  V mask;
  int64_t steps;
  bool is_backwards, zeroes;
};

Sequences sequences_of(LayerContext& context, size_t place) {
  const V x = context.input(place);
  check_rank(context, x, 3);
  const ir::SymInt steps = context.shape(x)[1];
  if (!steps.is_constant()) context.unsupported("input", "a free number of steps is not implemented");
  if (steps.hint() < 1 || steps.hint() > kMostSteps)
    context.unsupported("input",
                        std::to_string(steps.hint()) + " steps, of 1 to " + std::to_string(kMostSteps));
  V mask = context.mask(place);
  if (const auto given = context.tensor_argument("mask", 2)) mask = context.raw(*given);
  return {x, mask, steps.hint(), context.config().flag("go_backwards", false),
          context.config().flag("zero_output_for_mask", false)};
}

struct Run {
  std::vector<V> outputs;  ///< one a step, in the order in which they were made
  std::vector<V> states;
};

Run run_steps(LayerContext& context, Cell& cell, const Sequences& sequences, std::vector<V> states) {
  Compose c(context);
  const ir::SymShape shape = c.shape(sequences.x);
  const V steps_first = c.transpose(sequences.x, {1, 0, 2});
  const V rows = cell.project(c.reshape(steps_first, {shape[0] * shape[1], shape[2]}));
  const V all = c.reshape(rows, {shape[1], shape[0], c.shape(rows)[1]});
  Run run;
  V last = ir::kAbsent;
  for (int64_t i = 0; i < sequences.steps; ++i) {
    const int64_t at = sequences.is_backwards ? sequences.steps - 1 - i : i;
    const std::vector<V> before = states;
    V output = cell.step(c.squeeze(c.slice(all, 0, at, 1), 0), states);
    if (sequences.mask != ir::kAbsent) {
      // A step that does not count leaves everything as it was.
      const V counts = c.slice(sequences.mask, 1, at, 1);
      for (size_t k = 0; k < states.size(); ++k) states[k] = c.where(counts, states[k], before[k]);
      const V rest = last == ir::kAbsent || sequences.zeroes ? c.number(output, 0) : last;
      output = c.where(counts, output, rest);
    }
    last = output;
    run.outputs.push_back(output);
  }
  run.states = states;
  return run;
}

std::vector<V> first_states(LayerContext& context, const Cell& cell, const Arguments& arguments, V x) {
  Compose c(context);
  const std::vector<int64_t> sizes = cell.state_sizes();
  std::vector<V> states;
  for (const size_t place : arguments.states) states.push_back(context.input(place));
  if (!states.empty() && states.size() != sizes.size())
    context.invalid(std::to_string(states.size()) + " states are given, it has " +
                    std::to_string(sizes.size()));
  if (states.empty()) {
    for (const int64_t size : sizes) states.push_back(c.filled(c.dtype(x), {c.shape(x)[0], size}, 0));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    const ir::SymShape shape = c.shape(states[i]);
    if (shape.size() != 2 || !demand(ir::Relation::kEqual, shape[1], sizes[i]))
      context.invalid("a state of shape " + to_string(shape) + ", expected " + std::to_string(sizes[i]) +
                      " units");
  }
  return states;
}

}  // namespace

void convert_recurrent(LayerContext& context) {
  const LayerConfig& config = context.config();
  if (config.flag("stateful", false))
    context.unsupported("option stateful", "states between runs are not implemented");
  if (config.flag("time_major", false)) context.unsupported("option time_major", "it is not implemented");
  config.skip("use_cudnn");
  const std::string class_name(context.class_name());
  const Weights weights = class_name == "RNN" ? context.weights() : context.weights().part("cell", "");
  const auto cell = make_cell(context, class_name, config, weights);
  const Arguments arguments = arguments_of(context);
  const Sequences sequences = sequences_of(context, arguments.sequences);
  const Run run = run_steps(context, *cell, sequences, first_states(context, *cell, arguments, sequences.x));
  Compose c(context);
  if (config.flag("return_sequences", false)) {
    std::vector<V> parts;
    for (const V output : run.outputs) parts.push_back(c.unsqueeze(output, 1));
    context.add_output(c.concat(parts, 1), sequences.mask);
  } else {
    context.add_output(run.outputs.back());
  }
  if (!config.flag("return_state", false)) return;
  for (const V state : run.states) context.add_output(state);
}

namespace {

/// One direction of a Bidirectional layer. `word`: "forward" or "backward".
std::vector<Value> direction_of(LayerContext& context, const Layer& layer, const std::string& word,
                                const std::vector<Value>& inputs) {
  std::string name = layer.name;
  // Keras 2 called the directions' weights so, whatever the layer's name.
  if (!context.weights().is_numbered() && !context.weights().has(name)) name = word + "_" + layer.name;
  if (!context.weights().is_numbered() && !context.weights().has(name))
    context.invalid("it has no weights of its " + word + " layer \"" + layer.name + "\"");
  Layer own = layer;
  own.name = word + "_layer";
  return context.call_layer(own, context.weights().part(word + "_layer", name), inputs);
}

V flipped(LayerContext& context, V x) {
  Compose c(context);
  const ir::SymInt steps = c.shape(x)[1];
  return c.slice(x, 1, steps - 1, steps, -1);
}

V merged(LayerContext& context, const std::string& mode, V forward, V backward) {
  Compose c(context);
  if (mode == "concat") return c.concat({forward, backward}, context.rank(forward) - 1);
  if (mode == "sum") return c.add(forward, backward);
  if (mode == "ave") return c.times(c.add(forward, backward), 0.5);
  if (mode == "mul") return c.mul(forward, backward);
  context.invalid("merge_mode is \"" + mode + "\"");
}

bool option_of(const Layer& layer, const char* name) {
  return layer.config.is_object() && layer.config.contains(name) && layer.config.at(name) == true;
}

}  // namespace

void convert_bidirectional(LayerContext& context) {
  const LayerConfig& config = context.config();
  for (const char* option :
       {"return_sequences", "return_state", "stateful", "go_backwards", "zero_output_for_mask"})
    config.skip(option);
  const Layer layer = context.inner_layer("layer");
  Layer back = layer;
  if (config.has("backward_layer")) {
    back = context.inner_layer("backward_layer");
  } else {
    if (!back.config.is_object()) context.invalid("option layer is no layer");
    back.config["go_backwards"] = !option_of(layer, "go_backwards");
  }
  const Arguments arguments = arguments_of(context);
  Value sequences = context.value(arguments.sequences);
  if (const auto given = context.tensor_argument("mask", 2)) sequences.mask = context.raw(*given);
  std::vector<Value> forward_inputs{sequences}, backward_inputs{sequences};
  const size_t half = arguments.states.size() / 2;
  for (size_t i = 0; i < arguments.states.size(); ++i)
    (i < half ? forward_inputs : backward_inputs).push_back(context.value(arguments.states[i]));
  const std::vector<Value> forward = direction_of(context, layer, "forward", forward_inputs);
  std::vector<Value> backward = direction_of(context, back, "backward", backward_inputs);
  if (option_of(layer, "return_sequences")) backward.at(0).data = flipped(context, backward.at(0).data);
  const V mask = forward.at(0).mask;
  const std::string mode = config.text("merge_mode", "");
  if (mode.empty()) {
    context.add_output(forward[0].data, mask);
    context.add_output(backward[0].data, mask);
  } else {
    context.add_output(merged(context, mode, forward[0].data, backward[0].data), mask);
  }
  for (size_t i = 1; i < forward.size(); ++i) context.add_output(forward[i].data);
  for (size_t i = 1; i < backward.size(); ++i) context.add_output(backward[i].data);
}

// The steps are rows of a larger batch.
void convert_time_distributed(LayerContext& context) {
  const V x = context.input();
  Compose c(context);
  const ir::SymShape shape = c.shape(x);
  if (shape.size() < 3) context.invalid("the input has rank " + std::to_string(shape.size()));
  const Layer inner = context.inner_layer("layer");
  ir::SymShape rows(shape.begin() + 1, shape.end());
  rows[0] = context.product(shape[0], shape[1]);
  const auto outputs = context.call_layer(inner, context.weights().part("layer", inner.name),
                                          {{c.reshape(x, rows), ir::kAbsent}});
  for (const Value& output : outputs) {
    const ir::SymShape own = c.shape(output.data);
    ir::SymShape to{shape[0], shape[1]};
    to.insert(to.end(), own.begin() + 1, own.end());
    context.add_output(c.reshape(output.data, to));
  }
}

}  // namespace tensormill::frontend::keras
