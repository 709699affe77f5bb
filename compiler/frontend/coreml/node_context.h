/// What a converter sees of its operation. Thread-safety: as the graph.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/build/missing.h"
#include "compiler/build/op_builder.h"
#include "compiler/frontend/coreml/loaded_model.h"

namespace tensormill::frontend::coreml {

using build::CallFails;
using build::Compose;
using build::UnsupportedForm;
using V = ir::ValueId;

/// What a name of the program stands for: a constant of the file, a value of the graph once something asks
/// for it as one, or both.
struct Item {
  const Value* stored = nullptr;
  V value = ir::kAbsent;
  std::string_view state = {};  ///< of a state: its name in ImportState
};

struct BlockState;
/// What the blocks of one import share.
struct ImportState {
  const LoadedModel& loaded;
  ir::Graph& graph;
  const std::set<std::string>& reserved;  ///< names of inputs and outputs
  int opset = 0;                          ///< 7: CoreML7
  /// What the function's states are where an operation is converted, by their names.
  std::map<std::string_view, V> states = {};
  /// Whether what is converted counts, a bool []: in a branch that is not taken no loop of a run goes round.
  V guard = ir::kAbsent;
  int64_t loops = 0;  ///< of the graph
  /// The outputs of a block of an operation, which reads what is around it; nothing where an operation in it
  /// is not supported, which is noted.
  std::function<std::optional<std::vector<V>>(const Block& block, BlockState& around,
                                              const std::vector<V>& inputs)>
      call = {};
};
/// A block while it is converted.
struct BlockState {
  ImportState& import;
  BlockState* around = nullptr;  ///< the block whose operation it belongs to
  std::map<std::string_view, Item> items = {};
  /// Null where no operation before has made it.
  Item* find(std::string_view name);
};

class NodeContext : public build::OpBuilder {
public:
  NodeContext(BlockState& state, const Operation& node, const std::string& label);

  const Operation& node() const { return node_; }
  /// "conv"
  std::string_view op() const { return node_.type; }
  /// 5 for CoreML5 (iOS 15) to 9 (iOS 26).
  int opset() const { return state_.import.opset; }
  ImportState& import_state() { return state_.import; }

  /// Operands by the names of the documentation; attributes of the operation, as constexpr_ ones have them,
  /// are operands as well. One that is looked up in whatever way counts as read.
  bool has(const char* name);
  void skip(const char* name) { has(name); }
  /// The operand of one value. Throw Error(kInvalidModel) where it is missing.
  V tensor(const char* name);
  V optional_tensor(const char* name) { return has(name) ? tensor(name) : ir::kAbsent; }
  /// The state that an operand names, as it is now.
  V& state(const char* name);
  /// All values of an operand that takes several.
  ir::CheckedList<V> tensors(const char* name);
  /// The elements of a constant operand; nothing for what a run works out.
  std::optional<Tensor> constant_of(const char* name);

  /// Operands that are known while the graph is built; `otherwise` where one is not given. Throw
  /// UnsupportedForm for what a run works out.
  std::string text(const char* name, std::optional<std::string> otherwise = std::nullopt);
  /// The strings of a list or a tensor.
  ir::CheckedList<std::string> texts(const char* name);
  /// The tensors of a list of the file; a tensor is a list of itself.
  std::vector<const Value*> listed(const char* name);
  double real(const char* name, std::optional<double> otherwise = std::nullopt);
  ir::CheckedList<double> reals(const char* name);
  bool flag(const char* name, std::optional<bool> otherwise = std::nullopt);
  ir::CheckedList<bool> flags(const char* name);
  int64_t integer(const char* name, std::optional<int64_t> otherwise = std::nullopt);
  ir::Ints ints(const char* name, std::optional<std::vector<int64_t>> otherwise = std::nullopt);
  /// Whether the operand's integers are known, be it as expressions of free dims.
  bool is_known(const char* name);
  /// The integers of an operand, of any rank, row-major, those of several values behind each other: known
  /// ones as they are, others as symbols that a run binds (build/extents/run_numbers.h), `low` or more.
  ir::SymShape numbers(const char* name, std::optional<int64_t> low = std::nullopt,
                       const std::optional<ir::SymInt>& high = std::nullopt);
  ir::SymInt number(const char* name, std::optional<int64_t> low = std::nullopt,
                    const std::optional<ir::SymInt>& high = std::nullopt);
  /// The operand's axis within [0, rank).
  int64_t axis(const char* name, int64_t rank, std::optional<int64_t> otherwise = std::nullopt);
  /// The same of several, in order and once each; all axes where the operand is not given.
  ir::Ints axes(const char* name, int64_t rank);

  size_t num_outputs() const { return node_.outputs.size(); }
  /// What the file says of an output. Throw Error(kInvalidModel) where it is missing.
  const TensorType& output_type(size_t index) const;
  DType output_dtype(size_t index = 0) const;
  /// Of the type that the file says, which is checked.
  void set_output(size_t index, V value);
  void set_output(V value) { set_output(0, value); }
  /// The same, cast to it.
  void set_cast(size_t index, V value) { set_output(index, Compose(*this).cast(value, output_dtype(index))); }
  void set_outputs(const std::vector<V>& values);
  /// The output is what the operand is, without a node.
  void set_alias(const char* name);
  void set_stored(const Value& value);

  /// The outputs of a block of the operation for these inputs. Throws CallFails.
  const Block& block(size_t index) const;
  std::vector<V> call(const Block& block, const std::vector<V>& inputs);

  /// Throws UnsupportedForm for an operand that the file gives, no converter has read, and unread_options.def
  /// does not name.
  void check_read() const;

private:
  /// Values and names of an operand; empty where it is not given.
  std::vector<Item*> given(const char* name);
  Item& single(const char* name);
  V value_of(Item& item);
  std::optional<Tensor> elements_of(Item& item);
  /// Of all values of the operand, one after the other.
  std::vector<Tensor> known_elements(const char* name);
  ir::SymShape numbers_of(const char* name, Item& item, std::optional<int64_t> low,
                          const std::optional<ir::SymInt>& high);

  BlockState& state_;
  const Operation& node_;
  std::map<const Value*, Item> own_items_;  ///< of values that stand in the operation itself
  std::set<std::string, std::less<>> read_;
};

using Converter = void (*)(NodeContext& node);
/// Null where the operation is not known.
Converter find_converter(std::string_view type);

#define COREML_CONVERTER(name) void name(NodeContext& node);
#include "compiler/frontend/coreml/converters/converters.def"
#undef COREML_CONVERTER

}  // namespace tensormill::frontend::coreml
