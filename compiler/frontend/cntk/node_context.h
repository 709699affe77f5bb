/// What a converter sees of its function. Thread-safety: as the graph.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/build/op_builder.h"
#include "compiler/frontend/cntk/loaded_model.h"

namespace tensormill::frontend::cntk {

using build::Compose;
using build::UnsupportedForm;
using V = ir::ValueId;

/// A value of the graph: a tensor whose axes stand in the reverse of CNTK's order, and before them the batch
/// where the value is one of samples.
struct Item {
  V value = ir::kAbsent;
  bool has_batch = false;
  int64_t offset() const { return has_batch ? 1 : 0; }
};

/// What the functions of one import share.
struct ImportState {
  const LoadedModel& loaded;
  ir::Graph& graph;
  const std::set<std::string>& reserved;  ///< names of inputs and outputs
  std::map<Source, Item> items = {};
};

class NodeContext : public build::OpBuilder {
public:
  NodeContext(ImportState& state, size_t function);

  const Function& function() const { return function_; }
  std::string_view op() const { return function_.op; }
  /// Of the sample, without the batch.
  ir::SymShape sample(const Item& item) const;
  int64_t sample_rank(const Item& item) const { return rank(item.value) - item.offset(); }

  /// Operands by their places. One that is looked up counts as read. Throw Error(kInvalidModel) where there
  /// is none.
  size_t num_operands() const { return sources_.size(); }
  bool has_operand(size_t index) const { return index < sources_.size(); }
  Item operand(size_t index);
  void skip_operand(size_t index) { read_operands_.insert(index); }
  /// Operands, and all of them, whose axes go together as numpy's do; of the batch where one has it.
  struct Aligned {
    std::vector<V> values;
    bool has_batch = false;
  };
  Aligned aligned(const std::vector<Item>& items);
  Aligned aligned_operands();
  /// `value` [N,...] or [...] as the sample's shape says, with the batch of `like`.
  V with_sample(const Item& like, V value, const ir::SymShape& sample);

  /// Attributes by CNTK's names. One that is looked up counts as read. Throw Error(kInvalidModel) where one
  /// is of another kind, or is missing and has no value otherwise.
  bool has(const char* name);
  void skip(const char* name) { has(name); }
  int64_t integer(const char* name, std::optional<int64_t> otherwise = std::nullopt);
  double real(const char* name, std::optional<double> otherwise = std::nullopt);
  bool flag(const char* name, std::optional<bool> otherwise = std::nullopt);
  std::string text(const char* name);
  /// In CNTK's order; empty where the attribute is missing.
  ir::Ints dims(const char* name);
  ir::CheckedList<bool> flags(const char* name);
  ir::Ints integers(const char* name);
  std::vector<Axis> axes(const char* name);
  /// Where the axis stands in a sample's tensor of that rank. Throws UnsupportedForm for what is no axis of
  /// a sample.
  int64_t place_of(const Axis& axis, int64_t rank) const;
  int64_t place(const char* name, int64_t rank, std::optional<int64_t> otherwise = std::nullopt);

  void set_output(size_t index, V value, bool has_batch);
  void set_output(V value, bool has_batch) { set_output(0, value, has_batch); }

  /// Throws UnsupportedForm for an operand or an attribute that no converter has read, unless
  /// unread_options.def names the attribute.
  void check_read() const;

private:
  const Value* attribute(const char* name);
  [[noreturn]] void wrong(const char* name) const;
  template <typename T>
  std::vector<T> list(const char* name);

  ImportState& state_;
  const size_t index_;
  const Function& function_;
  const std::vector<Source>& sources_;
  std::set<std::string, std::less<>> read_;
  std::set<size_t> read_operands_;
};

using Converter = void (*)(NodeContext& node);
/// Of a function that is no block, or of a block that is one operator; null where it is not known.
Converter find_converter(const Function& function);
/// What a function is called in errors.
std::string function_label(const Function& function);

#define CNTK_CONVERTER(name) void name(NodeContext& node);
#include "compiler/frontend/cntk/converters/converters.def"
#undef CNTK_CONVERTER

}  // namespace tensormill::frontend::cntk
