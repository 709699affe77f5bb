/// Cells of recurrent layers. Thread-safety: as the context.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/frontend/keras/layer_context.h"

namespace tensormill::frontend::keras {

class Cell {
public:
  virtual ~Cell() = default;
  /// Of x [rows,features], what does not depend on the states.
  virtual V project(V x) = 0;
  /// The output of one step, of its part of what `project` gave; the states become those behind it.
  virtual V step(V projected, std::vector<V>& states) = 0;
  /// The extents of the states.
  virtual std::vector<int64_t> state_sizes() const = 0;
};

/// The cell of SimpleRNN, GRU or LSTM ("LSTM" or "LSTMCell"), or of StackedRNNCells; of a layer's own options
/// and weights. Throws UnsupportedForm.
std::unique_ptr<Cell> make_cell(LayerContext& context, const std::string& class_name,
                                const LayerConfig& config, const Weights& weights);

}  // namespace tensormill::frontend::keras
