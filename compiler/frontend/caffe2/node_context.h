/// What a converter sees of its operator. Thread-safety: as the graph.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/build/op_builder.h"
#include "compiler/frontend/caffe2/loaded_model.h"

namespace tensormill::frontend::caffe2 {

using build::Compose;
using build::UnsupportedForm;
using V = ir::ValueId;

/// For which real numbers integers stand: (x - zero) * scale.
struct Scale {
  double scale = 1;
  int64_t zero = 0;
};

/// What a name of the nets stands for: a constant, a value of the graph once something asks for it as one, or
/// both.
struct Item {
  std::optional<Tensor> stored = std::nullopt;
  V value = ir::kAbsent;
  std::optional<Scale> scale = std::nullopt;
};

/// An operator of integers that stand for real numbers.
struct Int8Row {
  std::string_view type, op;  ///< op: that of real numbers
  bool has_relu = false;
};
/// Null for other operators.
const Int8Row* find_int8(std::string_view type);

/// What the operators of one import share.
struct ImportState {
  const LoadedModel& loaded;
  ir::Graph& graph;
  const std::set<std::string>& reserved;  ///< names of inputs and outputs
  std::map<std::string_view, Item> items = {};
};

class NodeContext : public build::OpBuilder {
public:
  NodeContext(ImportState& state, const Operator& node, const std::string& label);

  const Operator& node() const { return node_; }
  /// Of operators of integers that of real numbers that they stand for (int8.def).
  std::string_view op() const { return op_; }
  const LoadedModel& loaded() const { return state_.loaded; }

  /// Operands by their places. One that is looked up counts as read.
  size_t num_operands() const { return node_.inputs.size(); }
  bool has_operand(size_t index) const { return index < node_.inputs.size(); }
  /// Throws Error(kInvalidModel) where it is missing. Of operators of integers the real numbers that it
  /// stands for.
  V operand(size_t index);
  V integers(size_t index);
  /// All of them, of which there must be one.
  ir::CheckedList<V> operands();
  /// Of integers that stand for real numbers. Throws Error(kInvalidModel) for others.
  Scale scale_of(size_t index);
  /// The integers of an operand: known ones as they are, others as symbols that a run binds
  /// (build/extents/run_numbers.h), `low` or more.
  ir::SymShape numbers(size_t index, std::optional<int64_t> low = std::nullopt);

  /// x as rows of what is behind the axis, which may be the rank.
  V as_rows(V x, int64_t axis);

  /// Arguments by their names. One that is looked up counts as read. Throw Error(kInvalidModel) where one is
  /// of another kind, or is missing and has no value otherwise.
  bool has(const char* name);
  int64_t integer(const char* name, std::optional<int64_t> otherwise = std::nullopt);
  double real(const char* name, std::optional<double> otherwise = std::nullopt);
  bool flag(const char* name, bool otherwise) { return integer(name, int64_t{otherwise}) != 0; }
  std::string text(const char* name, const std::string& otherwise);
  ir::Ints ints(const char* name);                  ///< empty where it is missing
  ir::CheckedList<double> reals(const char* name);  ///< the same
  /// The argument's axis within [0, rank).
  int64_t axis(const char* name, int64_t rank, std::optional<int64_t> otherwise = std::nullopt);
  /// Argument order: whether channels stand last, NHWC, else behind the batch, NCHW.
  bool is_channels_last();

  size_t num_outputs() const { return node_.outputs.size(); }
  bool has_output(size_t index) const { return index < node_.outputs.size(); }
  /// Throw Error(kInvalidModel) where the operator has no such output. Of operators of integers output 0 is
  /// rounded to what stands for the real numbers.
  void set_output(size_t index, V value);
  void set_output(V value) { set_output(0, value); }
  /// Output 0 as uint8 that stands for these real numbers, by arguments Y_scale and Y_zero_point.
  void set_rounded(V value);
  /// By these arguments.
  Scale own_scale();
  void set_outputs(const std::vector<V>& values);
  void set_stored(Tensor tensor, std::optional<Scale> scale = std::nullopt);
  /// Output 0 is what operand 0 is, without a node.
  void set_alias();

  /// Throws UnsupportedForm for an operand or an argument that no converter has read, unless
  /// unread_options.def names the argument.
  void check_read() const;

private:
  Item& given(size_t index);
  V value_of(Item& item);
  const Argument* argument(const char* name);
  void set_item(size_t index, Item item);

  ImportState& state_;
  const Operator& node_;
  const Int8Row* int8_;
  std::string_view op_;
  std::set<std::string, std::less<>> read_;
  std::set<size_t> read_operands_;
};

using Converter = void (*)(NodeContext& node);
/// Null where the operator is not known.
Converter find_converter(std::string_view type);

#define CAFFE2_CONVERTER(name) void name(NodeContext& node);
#include "compiler/frontend/caffe2/converters/converters.def"
#undef CAFFE2_CONVERTER

}  // namespace tensormill::frontend::caffe2
