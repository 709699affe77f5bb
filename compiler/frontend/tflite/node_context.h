/// What a converter sees of its operator. Thread-safety: as the graph.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/build/maps/channels_last.h"
#include "compiler/build/missing.h"
#include "compiler/build/op_builder.h"
#include "compiler/frontend/tflite/flex.h"
#include "compiler/frontend/tflite/loaded_model.h"

namespace tensormill::frontend::tflite {

using build::CallFails;
using build::Compose;
using build::UnsupportedForm;
using V = ir::ValueId;

/// The keys [n], a constant, and the values [n] of a table; kAbsent until it is filled.
struct LookupTable {
  TensorType key_type = TensorType::kString, value_type = TensorType::kString;
  V keys = ir::kAbsent, values = ir::kAbsent;
};

/// What the subgraphs of one import share.
struct ImportState {
  const LoadedModel& loaded;
  ir::Graph& graph;
  const std::set<std::string>& reserved;  ///< names of inputs and outputs
  bool is_exact = false;                  ///< ImportRequest
  FlexOperators flex = {};                ///< ImportRequest
  build::ChannelsLast maps = {};
  /// Variables: their numbers by name, and what each holds where the import stands.
  std::map<std::string, int64_t> handles = {};
  std::map<int64_t, V> variables = {};
  std::map<int64_t, LookupTable> lookup_tables = {};  ///< by their numbers
  std::set<int32_t> initialized = {};                 ///< subgraphs that run once
  std::map<int, V> tables = {};  ///< of functions of 16 bits, which layers share; integer_lstm.cc
  /// The outputs of a subgraph for these inputs; nothing where an operator in it is not supported, which is
  /// noted.
  std::function<std::optional<std::vector<V>>(uint32_t subgraph, const std::vector<V>& inputs)> call = {};
};
/// A subgraph while it is converted.
struct GraphState {
  ImportState& import;
  const Subgraph& subgraph;
  std::vector<V> values = {};  ///< by tensor; kAbsent: not made yet
};

class NodeContext : public build::OpBuilder {
public:
  NodeContext(GraphState& state, const Operator& node, const std::string& label);

  const Operator& node() const { return node_; }
  /// "CONV_2D"
  std::string_view op() const { return builtin_name(state_.import.loaded.model().codes[node_.code].builtin); }
  int32_t version() const { return state_.import.loaded.model().codes[node_.code].version; }
  /// The node's options; the schema's defaults where the file leaves them out. Throws Error(kInvalidModel)
  /// for those of another operator.
  template <typename Options>
  Options options() const {
    if (const auto* found = std::get_if<Options>(&node_.options)) return *found;
    if (!std::holds_alternative<std::monostate>(node_.options))
      invalid("it has the options of another operator");
    return {};
  }

  size_t num_inputs() const { return node_.inputs.size(); }
  size_t num_outputs() const { return node_.outputs.size(); }
  bool has_input(size_t index) const { return index < node_.inputs.size() && node_.inputs[index] >= 0; }
  /// The file's tensors. Throw Error(kInvalidModel) where the operand is missing.
  const Tensor& input_tensor(size_t index) const;
  const Tensor& output_tensor(size_t index) const;
  /// A tensor of the subgraph by its number there, as intermediate ones are named.
  const Tensor& subgraph_tensor(size_t index) const { return state_.subgraph.tensors[index]; }
  DType output_dtype(size_t index) const;

  /// The operand as it is stored: of a quantized tensor its integers.
  V stored(size_t index);
  /// A complex operand, its real and its imaginary part along a last axis of 2.
  V pair(size_t index);
  void set_pair(size_t index, V value) { set_stored(index, value); }
  /// The number of the variable that a resource operand stands for.
  int64_t handle(size_t index);
  ImportState& import_state() { return state_.import; }
  /// The operators of a subgraph.
  const Subgraph& subgraph(int32_t index) const {
    return state_.import.loaded.model().subgraphs[static_cast<size_t>(index)];
  }
  std::string_view op_of(const Operator& other) const {
    return builtin_name(state_.import.loaded.model().codes[other.code].builtin);
  }
  /// The operand's real numbers: dequantized where it is quantized.
  V real(size_t index);
  /// The same of one that may be absent: kAbsent.
  V optional_real(size_t index) { return has_input(index) ? real(index) : ir::kAbsent; }
  /// The real numbers of weights, transposed by `perm`, unless that is empty, and as `shape`: constants are
  /// so arranged once.
  V weights(size_t index, const Shape& perm, const ir::SymShape& shape);
  /// The stored elements of a constant, transposed by `perm` and as `shape`.
  ::tensormill::Tensor arranged(size_t index, const Shape& perm, const Shape& shape) const {
    return state_.import.loaded.arranged(input_tensor(index), perm, shape);
  }
  /// Integers of an operand that is known while the graph is built; throws UnsupportedForm otherwise.
  ir::SymShape known_ints(size_t index, const char* what);
  /// The one integer of such an operand.
  ir::SymInt known_int(size_t index, const char* what);
  bool is_known(size_t index);

  /// Maps with their channels last.
  build::ChannelsLast& maps() { return state_.import.maps; }
  V first(V x) { return state_.import.maps.first(*this, x); }
  V last(V y) { return state_.import.maps.last(*this, y); }
  /// The real numbers of an operand with its channels first: of integers they are what is transposed.
  V real_first(size_t index);
  bool is_map(V x) const { return state_.import.maps.is_made(x); }
  V elementwise(const std::string& op, const std::vector<V>& operands, const ir::Attrs& attrs = {}) {
    return state_.import.maps.elementwise(*this, op, operands, attrs);
  }
  /// What `compute` makes of each element of x.
  template <typename Compute>
  V pointwise(V x, const Compute& compute) {
    return is_map(x) ? last(compute(first(x))) : compute(x);
  }
  V activated(V x, Activation activation);

  /// Whether the operand and the output have the same scale and zero point, or none has any: what only moves
  /// elements moves the stored ones.
  bool has_output_scale(size_t input, size_t output = 0) const;
  void set_stored(size_t index, V value);
  /// The outputs of a subgraph. Throws CallFails.
  std::vector<V> call(uint32_t subgraph, const std::vector<V>& inputs);
  /// The output of real numbers, quantized as its tensor says.
  void set_real(size_t index, V value, Activation activation = Activation::kNone);

  /// What `convert` makes of the operator with other operands: its outputs as they are set.
  std::vector<V> converted_with(const std::vector<V>& operands, void (*convert)(NodeContext& node));

private:
  V value_of(int32_t tensor);
  V dequantized(const Tensor& tensor, V value, size_t axis);
  /// Throws UnsupportedForm where the import is exact.
  void refuse_exact() const;
  const Tensor& tensor_at(int32_t index) const { return state_.subgraph.tensors[static_cast<size_t>(index)]; }

  GraphState& state_;
  const Operator& node_;
  std::set<V> named_;
  /// Of an operator that is converted with other operands: these, and its outputs.
  std::vector<V> operands_, results_;
  bool is_inner_ = false;
};

/// Whether the tensor's integers stand for real numbers.
bool is_quantized(const Tensor& tensor);

using Converter = void (*)(NodeContext& node);
struct OpRow {
  int32_t code;
  int32_t max_version;
  Converter convert;
};
/// Of a custom operator by its name, of TensorFlow's by what `flex` knows. Null where there is none.
const OpRow* find_row(const OperatorCode& code, const FlexOperators& flex);
/// Converts the operator, as strings want it where an operand holds some (text_values.cc).
void convert_node(NodeContext& node, Converter convert);
/// The exact form of a builtin operator on quantized numbers (exact_ops.def). Null where there is none.
Converter find_exact(const OperatorCode& code);

#define TFL_CONVERTER(name) void name(NodeContext& node);
#include "compiler/frontend/tflite/converters/converters.def"
#undef TFL_CONVERTER

}  // namespace tensormill::frontend::tflite
