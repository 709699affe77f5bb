/// What a converter sees of its node. Thread-safety: as the graph.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/build/maps/channels_last.h"
#include "compiler/build/missing.h"
#include "compiler/build/numbers/complex.h"
#include "compiler/build/op_builder.h"
#include "compiler/frontend/tensorflow/loaded_model.h"
#include "compiler/frontend/tensorflow/schema.h"

namespace tensormill::frontend::tensorflow {

using build::CallFails;
using build::Complex;
using build::Compose;
using build::UnsupportedForm;
using V = ir::ValueId;

/// A variable, by its key in the checkpoint; "": it has none.
struct Resource {
  std::string name, key;
};
/// A list of tensors, which operators change by making another one; of TensorFlow 1 the flow of a
/// TensorArray.
struct TensorList {
  std::vector<V> elements;  ///< kAbsent: not set
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  ///< of an element; -1: not known
  bool has_rank = false;
  bool has_rows = false;  ///< the elements are the rows of a ragged tensor, of lengths of their own
  /// Of a list that is as long as a free dim or a run says, which has none of the elements above: its length,
  /// and the elements one behind the other along a first axis; kAbsent: none is set.
  std::optional<ir::SymInt> length = {};
  V whole = ir::kAbsent;
  /// Of one whose elements are rows of lengths of their own, along the first axis of the whole: where each
  /// begins and how long it is, i64 [length], otherwise kAbsent; none is longer than `most`.
  V begins = ir::kAbsent, lengths = ir::kAbsent;
  ir::SymInt most = 0;
  std::vector<V> head = {};  ///< of one without a whole: its first elements, which are set
  /// In an iteration of a loop: the iteration's element, where it has one, the iteration's number from 0 on,
  /// how many there are, and the element that the first iteration has.
  V row = ir::kAbsent, number = ir::kAbsent;
  ir::SymInt trips = 0;
  int64_t first = 0;

  ir::SymInt count() const { return length ? *length : ir::SymInt(elements.size()); }
};
/// A table that strings or numbers are looked up in, by the name that its handles share.
struct TableHandle {
  std::string name;
  DataType key = DataType::kInvalid, value = DataType::kInvalid;
  std::vector<V> no_keys = {};  ///< constants that stand, in a table by places, where there is no key
  bool has_scalars = true;      ///< whether its values have no dims
};
/// A file of the model, which a table is filled from.
struct AssetFile {
  std::string_view content;
};
/// The model's checkpoint.
struct CheckpointFiles {};
/// What is not computed: the side of a branch that is not taken.
struct Dead {};
/// What a node makes.
struct Item {
  std::variant<std::monostate, V, Complex, Resource, std::shared_ptr<const TensorList>, TableHandle,
               AssetFile, CheckpointFiles, Dead>
      value = {};
  /// Under which conditions it counts, of branches between Switch and Merge: predicate, side.
  std::map<V, bool> under = {};
};

/// The keys, a constant [n], and the values [n,...] of a table.
struct TableContent {
  V keys = ir::kAbsent, values = ir::kAbsent;
};

/// Where the elements of values along their first axis are: those of the rows of a table [rows,most], each as
/// long as `counts` [rows] says, one row behind the other; what is behind a row's end is not there.
struct PaddedRows {
  V counts = ir::kAbsent, is_there = ir::kAbsent;  ///< i64, bool [rows * most]
  ir::SymInt rows = 0, most = 0;
};

/// What all graphs and functions of one import share.
struct ImportState {
  const LoadedModel& loaded;
  ir::Graph& graph;
  const std::set<std::string>& reserved;  ///< names of inputs and outputs
  build::ChannelsLast maps = {};
  std::set<V> from_file = {};  ///< constants of the model, as they are there
  /// Those that are there already: by what they are in the file, and of variables by their keys.
  std::map<const TensorValue*, V> constants = {};
  std::map<const TensorValue*, Complex> complex_constants = {};
  std::map<std::string, V> variables = {};
  std::map<std::string, TableContent> tables = {};
  std::function<void()> fill_tables = {};  ///< by the nodes of the model that fill tables
  std::map<V, std::shared_ptr<const PaddedRows>> padded = {};
  std::map<const PaddedRows*, V> places_of_rows = {};  ///< those that are there, i64
  std::map<V, ir::SymShape> run_symbols = {};          ///< symbols for numbers that a run works out
  /// Of ragged tensors in variants, by their elements: how long the rows of each level are, the outermost
  /// first.
  std::map<V, std::vector<V>> ragged_levels = {};
  int64_t loops = 0;  ///< those that stay loops of the graph
  /// The outputs of a function; nothing where an operator in it is not supported, which is noted.
  std::function<std::optional<std::vector<Item>>(const FunctionRef& function,
                                                 const std::vector<Item>& inputs)>
      call = {};
};

class NodeContext : public build::OpBuilder {
public:
  /// `placeholders`: attributes of the call of the function that the node is in.
  NodeContext(ImportState& state, const Node& node, const OpRow& row, std::vector<Item> inputs,
              const Attributes* placeholders);
  /// The same node with other operands.
  NodeContext(NodeContext& node, std::vector<Item> inputs);

  const Node& node() const { return node_; }
  std::string_view op() const { return row_.name; }
  ImportState& import_state() { return state_; }

  size_t num_inputs() const { return inputs_.size(); }
  /// Throw Error(kInvalidModel) where the operand is missing, or is of another kind.
  const Item& item(size_t index) const;
  V input(size_t index) const;
  const Complex& complex(size_t index) const;
  ir::CheckedList<V> inputs_from(size_t first, size_t behind = SIZE_MAX) const;
  const Resource& resource(size_t index) const;
  const TableHandle& table(size_t index) const;
  /// One whose elements are known one by one; throws UnsupportedForm for another one.
  const TensorList& list(size_t index) const;
  const TensorList& any_list(size_t index) const;
  /// Integers of an operand that is known while the graph is built; throws UnsupportedForm otherwise.
  ir::SymShape known_ints(size_t index, const char* what) const;
  ir::SymInt known_int(size_t index, const char* what) const;
  /// The same of extents, of which one that a run works out is a symbol that the run binds, 0 or more; of a
  /// number that may be below 0.
  ir::SymShape extents_at(size_t index, const char* what);
  ir::SymInt number_at(size_t index, const char* what);
  bool is_known(size_t index) const;
  /// The one number of such an operand.
  double known_real(size_t index, const char* what) const;
  /// The strings of such an operand; the one that it has.
  std::vector<std::string> known_texts(size_t index, const char* what) const;
  std::string known_text(size_t index, const char* what) const;

  /// Attributes: `otherwise` where the file leaves them out, which it does of defaults. Those without one
  /// throw Error(kInvalidModel) then. An attribute that is looked up counts as read.
  bool has(const char* name);
  bool flag(const char* name, std::optional<bool> otherwise = {});
  int64_t integer(const char* name, std::optional<int64_t> otherwise = {});
  double real(const char* name, std::optional<double> otherwise = {});
  std::string text(const char* name, std::optional<std::string> otherwise = {});
  ir::Ints ints(const char* name, std::optional<std::vector<int64_t>> otherwise = {});
  std::vector<float> reals(const char* name);
  std::vector<std::string> texts(const char* name);
  DataType file_type(const char* name, std::optional<DataType> otherwise = {});
  DType dtype_attr(const char* name, std::optional<DataType> otherwise = {});
  TensorShape shape_attr(const char* name);
  const TensorValue& tensor_attr(const char* name);
  const FunctionRef& function(const char* name);
  std::vector<FunctionRef> functions(const char* name);
  size_t list_size(const char* name);
  /// Throws UnsupportedForm for an attribute that the file gives and nothing has read.
  void check_read() const;

  /// Weights, transposed by `perm` and as `shape`: constants of the model are so arranged once.
  V weights(V value, const Shape& perm, const ir::SymShape& shape);
  /// The value of a variable. Throws Error(kInvalidModel) where the checkpoint has none.
  V variable(const Resource& resource);
  /// A constant of the model.
  V file_constant(::tensormill::Tensor tensor);

  /// Maps: data_format says where the channels stand.
  build::ChannelsLast& maps() { return state_.maps; }
  bool is_channels_first();
  V map(V x) { return is_channels_first() ? x : first(x); }
  V unmap(V y) { return is_channels_first() ? y : last(y); }
  V first(V x) { return state_.maps.first(*this, x); }
  V last(V y) { return state_.maps.last(*this, y); }
  bool is_map(V x) const { return state_.maps.is_made(x); }
  V elementwise(const std::string& op, const std::vector<V>& operands, const ir::Attrs& attrs = {}) {
    return state_.maps.elementwise(*this, op, operands, attrs);
  }
  V binary(const char* op, V a, V b) { return elementwise(op, {a, b}); }
  V cast(V x, DType to) { return dtype(x) == to ? x : elementwise("cast", {x}, {{"to", to}}); }
  /// What `compute` makes of each element of x.
  template <typename Compute>
  V pointwise(V x, const Compute& compute) {
    return is_map(x) ? last(compute(first(x))) : compute(x);
  }

  std::vector<Item> call(const FunctionRef& function, const std::vector<Item>& inputs);
  void set_output(size_t index, V value);
  void set_item(size_t index, Item item);
  void set_items(std::vector<Item> items);
  void set_list(size_t index, TensorList list) {
    set_item(index, {std::make_shared<const TensorList>(std::move(list)), {}});
  }
  std::vector<Item> take_outputs() { return std::move(outputs_); }
  const std::vector<Item>& outputs() const { return outputs_; }

private:
  const AttrValue* attribute(const char* name);
  ir::SymShape run_time_numbers(size_t index, const char* what, std::optional<int64_t> low);
  template <typename T>
  const T* attribute_of(const char* name, bool is_required, const char* kind);

  ImportState& state_;
  const Node& node_;
  const OpRow& row_;
  const std::vector<Item> inputs_;
  const Attributes* placeholders_;
  std::set<std::string_view> read_;
  std::vector<Item> outputs_;
  bool has_name_ = true;  ///< whether the node's name is that of its first output
};

/// Converts the node by its row, or as strings and parts of strings (text_values.cc) or complex numbers want
/// it.
void convert_node(NodeContext& node, Converter convert);
/// Whether an operand is complex, and the conversion of such a node (complex_values.cc).
bool has_complex_operand(const NodeContext& node);
void convert_complex_node(NodeContext& node, Converter convert);
/// What is there of a value whose elements are those of padded rows: as long as a run decides.
V gathered_rows(NodeContext& node, V value);

#define TF_CONVERTER(name) void name(NodeContext& node);
#include "compiler/frontend/tensorflow/converters/converters.def"
#undef TF_CONVERTER

}  // namespace tensormill::frontend::tensorflow
