#include "compiler/frontend/keras/converters/cells.h"

#include "compiler/frontend/keras/names.h"

namespace tensormill::frontend::keras {

namespace {

/// What the cells have in common: kernel [features,gates * units], recurrent kernel [units,gates * units],
/// bias.
class GatedCell : public Cell {
public:
  GatedCell(LayerContext& context, const LayerConfig& config, const Weights& weights, int64_t gates)
      : context_(context), c_(context), activation_(config.at("activation")), gates_(gates) {
    kernel_ = context.weight_in(weights, "kernel", 0);
    recurrent_ = context.weight_in(weights, "recurrent_kernel", 1);
    const ir::Ints shape = context.weight_shape(recurrent_, 2, "the recurrent kernel");
    const ir::Ints inputs = context.weight_shape(kernel_, 2, "the kernel");
    units_ = shape[0];
    if (units_ < 1 || config.integer("units", units_) != units_ || shape[1] != gates * units_ ||
        inputs[1] != shape[1])
      context.invalid("a recurrent kernel of shape " + to_string(shape) + " and a kernel of shape " +
                      to_string(inputs));
    if (config.flag("use_bias", true)) bias_ = context.weight_in(weights, "bias", 2);
  }

  V project(V x) override {
    if (!demand(ir::Relation::kEqual, c_.shape(x)[1], c_.shape(kernel_)[0]))
      context_.invalid("steps of " + to_string(c_.shape(x)[1]) + " features for a kernel of shape " +
                       to_string(c_.shape(kernel_)));
    const V sums = c_.matmul(x, kernel_);
    const V bias = input_bias();
    return bias == ir::kAbsent ? sums : c_.add(sums, bias);
  }
  std::vector<int64_t> state_sizes() const override { return {units_}; }

protected:
  virtual V input_bias() { return bias_; }
  V gate(V sums, int64_t index) { return c_.slice(sums, 1, index * units_, units_); }

  LayerContext& context_;
  Compose c_;
  const Json activation_;
  const int64_t gates_;
  int64_t units_ = 0;
  V kernel_ = ir::kAbsent, recurrent_ = ir::kAbsent, bias_ = ir::kAbsent;
};

class SimpleCell final : public GatedCell {
public:
  SimpleCell(LayerContext& context, const LayerConfig& config, const Weights& weights)
      : GatedCell(context, config, weights, 1) {}
  V step(V projected, std::vector<V>& states) override {
    states[0] = activated(context_, activation_, c_.add(projected, c_.matmul(states[0], recurrent_)));
    return states[0];
  }
};

// Gates in the order input, forget, candidate, output.
class LstmCell final : public GatedCell {
public:
  LstmCell(LayerContext& context, const LayerConfig& config, const Weights& weights)
      : GatedCell(context, config, weights, 4), gating_(config.at("recurrent_activation")) {}
  V step(V projected, std::vector<V>& states) override {
    const V sums = c_.add(projected, c_.matmul(states[0], recurrent_));
    const V input = activated(context_, gating_, gate(sums, 0));
    const V forget = activated(context_, gating_, gate(sums, 1));
    const V candidate = activated(context_, activation_, gate(sums, 2));
    states[1] = c_.add(c_.mul(forget, states[1]), c_.mul(input, candidate));
    const V output = activated(context_, gating_, gate(sums, 3));
    states[0] = c_.mul(output, activated(context_, activation_, states[1]));
    return states[0];
  }
  std::vector<int64_t> state_sizes() const override { return {units_, units_}; }

private:
  const Json gating_;
};

// Gates in the order update, reset, candidate. The reset applies before the product with the state, or behind
// it: then the bias is [2,3 * units], of the inputs and of the states.
class GruCell final : public GatedCell {
public:
  GruCell(LayerContext& context, const LayerConfig& config, const Weights& weights)
      : GatedCell(context, config, weights, 3),
        gating_(config.at("recurrent_activation")),
        resets_late_(config.flag("reset_after", false)) {
    if (bias_ == ir::kAbsent || !resets_late_) return;
    static_cast<void>(context.weight_shape(bias_, 2, "the bias"));
    state_bias_ = c_.squeeze(c_.slice(bias_, 0, 1, 1), 0);
    bias_ = c_.squeeze(c_.slice(bias_, 0, 0, 1), 0);
  }
  V step(V projected, std::vector<V>& states) override {
    const V last = states[0];
    V update = ir::kAbsent, candidate = ir::kAbsent;
    if (resets_late_) {
      V sums = c_.matmul(last, recurrent_);
      if (state_bias_ != ir::kAbsent) sums = c_.add(sums, state_bias_);
      update = activated(context_, gating_, c_.add(gate(projected, 0), gate(sums, 0)));
      const V reset = activated(context_, gating_, c_.add(gate(projected, 1), gate(sums, 1)));
      candidate = c_.add(gate(projected, 2), c_.mul(reset, gate(sums, 2)));
    } else {
      const V gates = c_.matmul(last, c_.slice(recurrent_, 1, 0, 2 * units_));
      update = activated(context_, gating_, c_.add(gate(projected, 0), gate(gates, 0)));
      const V reset = activated(context_, gating_, c_.add(gate(projected, 1), gate(gates, 1)));
      const V kept = c_.matmul(c_.mul(reset, last), c_.slice(recurrent_, 1, 2 * units_, units_));
      candidate = c_.add(gate(projected, 2), kept);
    }
    candidate = activated(context_, activation_, candidate);
    const V rest = c_.sub(c_.number(update, 1), update);
    states[0] = c_.add(c_.mul(update, last), c_.mul(rest, candidate));
    return states[0];
  }

private:
  const Json gating_;
  const bool resets_late_;
  V state_bias_ = ir::kAbsent;
};

/// Cells one behind the other, each with its own states.
class StackedCells final : public Cell {
public:
  explicit StackedCells(std::vector<std::unique_ptr<Cell>> cells) : cells_(std::move(cells)) {}
  V project(V x) override { return cells_.front()->project(x); }
  V step(V projected, std::vector<V>& states) override {
    size_t at = 0;
    V output = ir::kAbsent;
    for (const auto& cell : cells_) {
      const size_t count = cell->state_sizes().size();
      std::vector<V> own(states.begin() + static_cast<std::ptrdiff_t>(at),
                         states.begin() + static_cast<std::ptrdiff_t>(at + count));
      output = cell->step(at == 0 ? projected : cell->project(output), own);
      std::copy(own.begin(), own.end(), states.begin() + static_cast<std::ptrdiff_t>(at));
      at += count;
    }
    return output;
  }
  std::vector<int64_t> state_sizes() const override {
    std::vector<int64_t> sizes;
    for (const auto& cell : cells_) {
      const std::vector<int64_t> own = cell->state_sizes();
      sizes.insert(sizes.end(), own.begin(), own.end());
    }
    return sizes;
  }

private:
  const std::vector<std::unique_ptr<Cell>> cells_;
};

/// The cell of an option's layer, with all of its options read.
std::unique_ptr<Cell> cell_of(LayerContext& context, const Layer& layer, const Weights& weights) {
  const LayerConfig config(layer.config);
  std::unique_ptr<Cell> cell = make_cell(context, layer.class_name, config, weights);
  if (const auto option = config.unread())
    context.unsupported("option " + *option + " of " + layer.class_name, "it is not known");
  return cell;
}

}  // namespace

std::unique_ptr<Cell> make_cell(LayerContext& context, const std::string& class_name,
                                const LayerConfig& config, const Weights& weights) {
  if (class_name == "SimpleRNN" || class_name == "SimpleRNNCell")
    return std::make_unique<SimpleCell>(context, config, weights);
  if (class_name == "GRU" || class_name == "GRUCell")
    return std::make_unique<GruCell>(context, config, weights);
  if (class_name == "LSTM" || class_name == "LSTMCell")
    return std::make_unique<LstmCell>(context, config, weights);
  if (class_name == "RNN") {
    const Json& json = config.at("cell");
    if (!json.is_object()) context.invalid("option cell is no cell");
    const Layer cell = read_layer(json);
    return cell_of(context, cell, weights.part("cell", cell.name));
  }
  if (class_name != "StackedRNNCells")
    context.unsupported("cell " + class_name.substr(0, 100), "it is not implemented");
  const Json& list = config.at("cells");
  if (!list.is_array() || list.empty() || list.size() > 64)
    context.invalid("option cells is no list of cells");
  Network network;
  for (const Json& json : list) network.layers.push_back(read_layer(json));
  std::vector<std::unique_ptr<Cell>> cells;
  const std::vector<std::string> groups = weight_groups(network);
  for (size_t i = 0; i < groups.size(); ++i) {
    // "layers/lstm_cell_1" of a model is "cells/lstm_cell_1" here.
    const std::string group = "cells" + groups[i].substr(groups[i].find('/'));
    cells.push_back(cell_of(context, network.layers[i], weights.part(group, network.layers[i].name)));
  }
  return std::make_unique<StackedCells>(std::move(cells));
}

}  // namespace tensormill::frontend::keras
