/// What a converter sees of its node. Thread-safety: as the graph.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/build/op_builder.h"
#include "compiler/frontend/mxnet/loaded_model.h"

namespace tensormill::frontend::mxnet {

using build::Compose;
using build::UnsupportedForm;
using V = ir::ValueId;

/// What the nodes of one import share.
struct ImportState {
  const LoadedModel& loaded;
  ir::Graph& graph;
  const std::set<std::string>& reserved;                ///< names of inputs and outputs
  std::map<std::pair<size_t, size_t>, V> values = {};   ///< by node and output
  std::map<std::string, V, std::less<>> implicit = {};  ///< variables that old files leave out
};

class NodeContext : public build::OpBuilder {
public:
  NodeContext(ImportState& state, size_t index, const std::string& label);

  const Node& node() const { return node_; }
  /// "Convolution"
  std::string_view op() const { return node_.op; }

  size_t num_inputs() const { return node_.inputs.size(); }
  bool has_input(size_t index) const { return index < node_.inputs.size(); }
  /// Throw Error(kInvalidModel) where there is none.
  V input(size_t index);
  ir::CheckedList<V> inputs();
  /// The operand, or the parameter NODE_NAME, as files before 0.9 leave out what training changes.
  V input_or(size_t index, const char* name);

  /// Attributes by the names of the documentation; "None" is none. One that is looked up in whatever way
  /// counts as read. Throw Error(kInvalidModel) for what is no such value, and, without `otherwise`, where it
  /// is missing.
  bool has(const char* name);
  void skip(const char* name) { has(name); }
  std::string text(const char* name, std::optional<std::string> otherwise = std::nullopt);
  double real(const char* name, std::optional<double> otherwise = std::nullopt);
  bool flag(const char* name, bool otherwise);
  int64_t integer(const char* name, std::optional<int64_t> otherwise = std::nullopt);
  ir::Ints ints(const char* name, std::optional<std::vector<int64_t>> otherwise = std::nullopt);
  /// The same, of which some may be "None".
  std::vector<std::optional<int64_t>> maybe_ints(const char* name);
  ir::CheckedList<double> reals(const char* name,
                                std::optional<std::vector<double>> otherwise = std::nullopt);
  /// "float32"; `otherwise` where it is not given.
  DType dtype_named(const char* name, DType otherwise);
  int64_t axis(const char* name, int64_t rank, std::optional<int64_t> otherwise = std::nullopt);
  /// In order and once each; all axes where the attribute is not given or is an empty list.
  ir::Ints axes(const char* name, int64_t rank);

  void set_output(size_t index, V value);
  void set_output(V value) { set_output(0, value); }
  void set_outputs(const std::vector<V>& values);

  /// Throws UnsupportedForm for an attribute that the file gives, no converter has read, and
  /// unread_options.def does not name.
  void check_read() const;

private:
  const std::string* given(const char* name);
  [[noreturn]] void wrong(const char* name, const std::string& value) const;
  V value_of(const Entry& entry);

  ImportState& state_;
  const size_t index_;
  const Node& node_;
  std::set<std::string, std::less<>> read_;
};

using Converter = void (*)(NodeContext& node);
/// Null where the operator is not known.
Converter find_converter(std::string_view op);
/// What a node is called in errors.
std::string node_label(const Node& node, size_t index);

#define MXNET_CONVERTER(name) void name(NodeContext& node);
#include "compiler/frontend/mxnet/converters/converters.def"
#undef MXNET_CONVERTER

}  // namespace tensormill::frontend::mxnet
