/// What a converter sees of the call of a layer that it converts. Thread-safety: as the graph.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/build/maps/channels_last.h"
#include "compiler/build/maps/windows.h"
#include "compiler/build/missing.h"
#include "compiler/build/op_builder.h"
#include "compiler/frontend/keras/import.h"
#include "compiler/frontend/keras/layer_config.h"
#include "compiler/frontend/keras/weights.h"

namespace tensormill::frontend::keras {

using build::CallFails;
using build::Compose;
using build::UnsupportedForm;
using V = ir::ValueId;

/// A tensor between layers, and which of its steps count: bool [batch,steps], or kAbsent.
struct Value {
  V data = ir::kAbsent;
  V mask = ir::kAbsent;
};

struct LayerCall {
  const Layer& layer;
  std::string label;  ///< the layer's name, behind those of the models that it lies in
  Weights weights;
  std::vector<Value> inputs;
  const Json& positional;
  const Json& named;
};

/// What the layers of one import share.
struct ImportState {
  std::shared_ptr<const LoadedModel> loaded;
  ir::Graph& graph;
  const std::set<std::string>& reserved;  ///< names of inputs and outputs
  build::ChannelsLast maps = {};
  std::map<const Weight*, V> constants = {};
  /// The outputs of a layer that another one holds. Throws CallFails where it is not supported, which is
  /// noted.
  std::function<std::vector<Value>(const LayerCall& call)> call = {};
};

class LayerContext : public build::OpBuilder {
public:
  LayerContext(ImportState& state, const LayerCall& call);

  const Layer& layer() const { return call_.layer; }
  std::string_view class_name() const { return call_.layer.class_name; }
  const LayerConfig& config() const { return config_; }
  /// Whether the file was written by Keras 1 or 2, of which some functions are others.
  bool has_old_rules() const { return state_.loaded->model.has_old_rules(); }
  /// Of floating-point inputs and weights, and so of what is computed.
  DType compute_dtype() const { return compute_dtype_; }

  /// The tensors of the call but those that are given by name, which stand behind them.
  size_t num_inputs() const;
  /// Whether the call asks for training. What Keras 3 writes of it is overruled by each run.
  bool trains() const;
  /// The call's tensor: real numbers in the layer's own type.
  V input(size_t place = 0);
  /// As it was given.
  V raw(size_t place) const;
  /// The words that the layer was adapted to, a line each; nothing where the file has none.
  std::optional<std::string_view> vocabulary_file() const;
  V mask(size_t place = 0) const { return value(place).mask; }
  /// Throws Error(kInvalidModel) where the call has fewer tensors.
  const Value& value(size_t place) const;
  /// An argument of the call by name or position; null where it was not given. Tensors are {kTensorMark:
  /// place}.
  const Json& argument(const std::string& name, size_t position = SIZE_MAX) const;
  /// The place of an argument that is a tensor; nothing where it was not given.
  std::optional<size_t> tensor_argument(const std::string& name, size_t position = SIZE_MAX) const;
  /// The masks of the first `count` tensors: those of an argument that is a list of them, kAbsent for null,
  /// or, where it was not given, those that came with the tensors.
  std::vector<V> masks_argument(const std::string& name, size_t position, size_t count) const;
  /// The first argument of the call that is set and was not read.
  std::optional<std::string> unread_argument() const;

  /// The layer's `index`-th weight, `name` where the file names them, in the layer's own type.
  V weight(std::string_view name, size_t index) { return weight_in(call_.weights, name, index); }
  V weight_in(const Weights& weights, std::string_view name, size_t index);
  /// As it is stored.
  V stored_weight(std::string_view name, size_t index) { return stored_in(call_.weights, name, index); }
  V stored_in(const Weights& weights, std::string_view name, size_t index);
  const Weights& weights() const { return call_.weights; }
  /// The extents of a weight, of which there are `rank`.
  ir::Ints weight_shape(V weight, size_t rank, const char* what) const;

  /// Maps: data_format says where the channels stand.
  bool is_channels_first() const;
  V map(V x) { return is_channels_first() ? x : state_.maps.first(*this, x); }
  V unmap(V y) { return is_channels_first() ? y : state_.maps.last(*this, y); }
  V first(V x) { return state_.maps.first(*this, x); }
  V last(V y) { return state_.maps.last(*this, y); }
  bool is_map(V x) const { return state_.maps.is_made(x); }
  V elementwise(const std::string& op, const std::vector<V>& operands, const ir::Attrs& attrs = {}) {
    return state_.maps.elementwise(*this, op, operands, attrs);
  }
  /// What `compute` makes of each element of x.
  template <typename Compute>
  V pointwise(V x, const Compute& compute) {
    return is_map(x) ? last(compute(first(x))) : compute(x);
  }
  /// Another type of the elements.
  V cast(V x, DType to);

  /// The outputs of a layer that this one holds: its configuration, its weights, what it is called with.
  std::vector<Value> call_layer(const Layer& inner, const Weights& weights, const std::vector<Value>& inputs);
  /// The layer that an option holds.
  Layer inner_layer(const char* option) const;

  void set_output(V data) { outputs_ = {{data, ir::kAbsent}}; }
  void set_output(V data, V mask) { outputs_ = {{data, mask}}; }
  void add_output(V data, V mask = ir::kAbsent) { outputs_.push_back({data, mask}); }
  /// The outputs; the first one named as the layer where that name is free.
  std::vector<Value> outputs();

private:
  V constant_of(const Weight& weight);

  ImportState& state_;
  const LayerCall& call_;
  const LayerConfig config_;
  const DType compute_dtype_;
  mutable std::set<std::string> read_arguments_;
  mutable std::set<size_t> read_positions_;
  std::vector<Value> outputs_;
};

/// What Keras' activation `function` makes of x: its name, or its serialized form.
V activated(LayerContext& context, const Json& function, V x);
/// "softmax" or "log_softmax" along an axis, which may be negative.
V soft_max(LayerContext& context, const std::string& op, V x, int64_t axis);
/// x with the activation of option `name`, which is linear where there is none.
V with_activation(LayerContext& context, V x, const char* name = "activation");

using Converter = void (*)(LayerContext& context);
/// What becomes of the mask of a layer's first input.
enum class MaskRule : uint8_t {
  kDropped,  ///< the outputs have none, as in Keras
  kPassed,   ///< the outputs have it
  kOwn,      ///< the converter says
};
struct LayerRow {
  std::string_view name;
  MaskRule mask;
  Converter convert;
};
/// Of a class of layers, or of an operator of keras.ops. Null where there is none.
const LayerRow* find_row(const Layer& layer);

#define KERAS_CONVERTER(name) void name(LayerContext& context);
#include "compiler/frontend/keras/converters/converters.def"
#undef KERAS_CONVERTER

}  // namespace tensormill::frontend::keras
