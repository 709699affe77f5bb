/// What a converter sees of its node. Thread-safety: as the graph.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/build/missing.h"
#include "compiler/build/numbers/complex.h"
#include "compiler/build/op_builder.h"
#include "compiler/frontend/pytorch/extent_real.h"
#include "compiler/frontend/pytorch/loaded_program.h"
#include "compiler/frontend/pytorch/promotion.h"
#include "compiler/frontend/pytorch/schema.h"
#include "compiler/frontend/pytorch/views.h"

namespace tensormill::frontend::pytorch {

using build::CallFails;
using build::Compose;
using build::UnsupportedForm;
using V = ir::ValueId;

/// A number that is no tensor: an extent, or what follows from extents.
using Number = std::variant<bool, ir::SymInt, double>;
/// A number that a run works out, as item() of a tensor is: a tensor without dims.
struct RunNumber {
  V value = ir::kAbsent;
};

struct GraphState;
/// What the graphs of one import share.
struct ImportState {
  const LoadedProgram& loaded;
  ir::Graph& graph;
  const std::set<std::string>& reserved;  ///< names of inputs and outputs
  /// The outputs of a graph within a node; nothing where an operator in it is not supported, which is noted.
  std::function<std::optional<std::vector<V>>(const Graph& graph, const std::vector<View>& inputs)> call = {};
};
/// A graph while it is converted.
struct GraphState {
  ImportState& import;
  const Graph& graph;
  std::map<std::string, View, std::less<>> tensors = {};
  std::map<std::string, Number, std::less<>> numbers = {};
  std::set<std::string, std::less<>> used = {};  ///< names that a node or an output reads
  /// Whether the graph says the types of all values, how many results each node has, and where elements lie.
  bool is_typed = true;
  std::map<std::string, RunNumber, std::less<>> run_numbers = {};
  std::map<std::string, ExtentReal, std::less<>> extent_reals = {};
};

/// A tensor or a number, as which both an operator may take.
struct Operand {
  V value = ir::kAbsent;  ///< kAbsent: it is a number
  Number number = false;
  OperandType type;
};

/// What of complex operands a node takes while it is converted as if they were real.
enum class Part : uint8_t {
  kReal,
  kImaginary,
  kLength,
};
struct Parts {
  Part first = Part::kReal;   ///< of all arguments but
  Part second = Part::kReal;  ///< of that one, or of the second tensor of the list that it is
  std::string_view of_second = {};
  bool fills = false;  ///< values that are real have an imaginary part, too, of 0
};
/// A result of a node that is converted so.
struct PartResult {
  V value = ir::kAbsent;
  /// Where it is or is not a copy of an argument's elements, which (set_maybe_shared).
  std::string shared_of = {};
  MemoryFormat format = MemoryFormat::kPreserve;
};

class NodeContext : public build::OpBuilder {
public:
  NodeContext(GraphState& state, const Node& node, const OpRow& row, const std::string& label);

  const Node& node() const { return node_; }
  const OpRow& row() const { return row_; }
  const std::string& op() const { return row_.name; }

  /// Where an argument's elements lie, as the file says it or as far as it is known: whether they lie in that
  /// format (throws Error(kInvalidModel) where tensors of its rank have none), whether torch takes it for the
  /// tensor's own, and whether torch looks at the tensor in other sizes without a copy.
  std::optional<bool> lies_in(const char* name, MemoryFormat format);
  std::optional<bool> is_suggested(const char* name, MemoryFormat format);
  std::optional<bool> has_view_as(const char* name, const ir::SymShape& wanted);
  /// The order of the argument's axes in which it lies row after row from where its storage begins to where
  /// that ends, where that is known.
  std::optional<std::vector<int64_t>> axes_of_whole(const char* name);
  /// The argument "memory_format"; `otherwise` where there is none.
  MemoryFormat memory_format(MemoryFormat otherwise);

  /// Whether the argument is there, and not None. An argument that is looked up in whatever way counts as
  /// read.
  bool has(const char* name);
  bool is_tensor(const char* name);
  V tensor(const char* name);
  V optional_tensor(const char* name) { return has(name) ? tensor(name) : ir::kAbsent; }
  ir::CheckedList<V> tensors(const char* name);
  /// kAbsent for those that are None.
  ir::CheckedList<V> optional_tensors(const char* name);
  ir::SymInt sym(const char* name);
  ir::SymShape syms(const char* name);
  /// Throw UnsupportedForm for what a run works out. The sum and the difference of two integers are of 64
  /// bits: what is larger is no model's.
  int64_t integer(const char* name);
  ir::Ints ints(const char* name);
  double real(const char* name);
  ir::CheckedList<double> reals(const char* name);
  bool flag(const char* name);
  std::string text(const char* name);
  /// Throws UnsupportedForm for one that a run works out.
  Number number(const char* name);
  /// One that a run works out; nothing where it is known.
  std::optional<RunNumber> run_number(const char* name);
  /// One that follows from free extents; nothing for another one. As number(name) it is fixed.
  std::optional<ExtentReal> extent_real(const char* name);
  /// A number, or what follows from free extents, as far as float64 has it exactly (extent_real.h); nothing
  /// for one that a run works out.
  std::optional<Ratio> ratio(const char* name);
  std::optional<DType> optional_dtype(const char* name);
  Operand operand(const char* name);
  /// The argument's axis within [0, rank). A tensor without dims has none, which is an error.
  int64_t axis(const char* name, int64_t rank);
  /// The same; of a rank of 0, as if it were 1.
  int64_t axis_or_first(const char* name, int64_t rank) { return axis_of(integer(name), rank); }
  /// In the argument's order; of a rank of 0 there are none, whichever it names of a rank of 1.
  ir::Ints axes(const char* name, int64_t rank);
  int64_t axis_of(int64_t axis, int64_t rank) const {
    return normalize_axis(axis, std::max<int64_t>(rank, 1));
  }
  /// The graph and the operands of an argument of an operator that calls graphs.
  const Graph& graph_of(const char* name);
  std::vector<V> call(const Graph& graph, const char* operands);
  std::vector<V> call(const Graph& graph, const std::vector<V>& operands);

  /// Whether the file says the types of values; what is needed of a type where it does not is worked out.
  bool is_typed() const { return state_.is_typed; }
  /// What the operands are computed in together.
  DType common_type(const std::vector<Operand>& operands) const;
  /// The operand in that type: a number as a constant.
  V as(const Operand& operand, DType dtype);
  /// In the type that the file says of the output.
  V as_output(V value, size_t index = 0);

  size_t num_outputs() const { return outputs_.size(); }
  bool is_used(size_t index) const;
  /// The same; where the file does not say it, true.
  bool may_be_used(size_t index) const { return !state_.is_typed || is_used(index); }
  /// Whether anything but an assertion reads the number that the node makes.
  bool is_number_used() const;
  /// The range that the file gives to the number that the node makes, where extents of tensors are made of
  /// it; nothing for other numbers.
  std::optional<SymbolRange> extent_range() const;
  /// An integer of one element that a run works out as a symbol, of which extents are made: `low` or more,
  /// and at most `high`, which nothing checks.
  ir::SymInt bind_number(V x, int64_t low, const std::optional<ir::SymInt>& high);
  /// What the file says of an extent of the first output, as far as its symbols are bound.
  std::optional<ir::SymInt> said_extent(size_t axis) const;
  DType output_dtype(size_t index = 0);
  const TensorMeta& output_meta(size_t index = 0) const;
  const TensorMeta& input_meta(const char* name);
  void set_output(size_t index, V value);
  void set_outputs(const std::vector<V>& values);
  /// The output is a view of argument `of`.
  void set_view(size_t index, const char* of, std::shared_ptr<const ViewStep> step);
  /// The output is a view of tensor `part` of the list that argument `of` is.
  void set_view_in(size_t index, const char* of, size_t part,
                   std::vector<std::shared_ptr<const ViewStep>> steps);
  /// The output is `value`, which is new and lies in that format; for kPreserve as argument `like`, where
  /// that lies densely.
  void set_new(V value, const char* like, MemoryFormat format);
  /// The output is `value`, elements of argument `of` in a view of them or a copy: neither is read after the
  /// other was written. `format`: it lies in that one, whichever of the two it is; kPreserve: it is not known
  /// where it lies.
  void set_maybe_shared(const char* of, V value, MemoryFormat format = MemoryFormat::kPreserve);
  /// The output is the argument itself.
  void set_alias(const char* of, size_t index = 0);
  // Complex numbers are pairs: their parts stand along a last axis of 2. tensor(), tensors() and number()
  // throw UnsupportedForm of them, but within of_parts().
  /// Whether an argument is complex, or what the node makes.
  bool has_complex() const;
  bool is_complex(const char* name);
  /// Of tensor `index` of the list.
  bool is_complex_in(const char* name, size_t index);
  size_t num_tensors(const char* name) { return given(name)->names.size(); }
  /// As far as it is known where the file does not say it.
  bool makes_complex(size_t index = 0);
  /// A tensor or a number, of imaginary parts of 0 where it is real; of `dtype`.
  build::Complex complex(const char* name, DType dtype);
  /// The type of the parts of what has these arguments' type in common.
  DType common_part_type(const std::vector<const char*>& names);
  V pairs(const char* name);
  void set_pairs(size_t index, V pairs);
  void set_complex(size_t index, const build::Complex& value) {
    set_pairs(index, build::paired(*this, value));
  }
  /// What `convert` would set of those parts; views of complex tensors are set at once.
  std::map<size_t, PartResult> of_parts(Parts parts, Converter convert);
  /// The same of two such runs, of each part.
  void set_parts(size_t index, const PartResult& real, V imaginary);
  /// The output is a view of argument `of` that is complex or not, whatever that is.
  void set_view_as(bool is_complex, const char* of, std::vector<std::shared_ptr<const ViewStep>> steps);
  void set_number(Number value);
  void set_run_number(RunNumber value);
  void set_extent_real(ExtentReal value);
  /// Names of the results, "" for one that was not made.
  const std::vector<std::string>& outputs() const { return outputs_; }
  /// Throws UnsupportedForm for an argument that the file gives and no converter has read.
  void check_read() const;

private:
  const Argument* given(const char* name);
  /// Of an argument; of one that the file has by its place alone, that of the schema, whose last one stands
  /// for all behind it.
  std::string_view name_of(size_t input) const;
  const SchemaArgument& declared(const char* name) const;
  Number number_of(const Json& json, ArgumentKind kind, const char* name);
  ir::SymInt sym_of(const Json& json, const char* name);
  int64_t fixed(const ir::SymInt& value, const char* name) const;
  View& view(const std::string& name);
  void take(const std::string& name, View view);
  /// The output is what the steps make of `from`.
  void take_view(size_t index, View& from, std::vector<std::shared_ptr<const ViewStep>> steps);
  /// Writes to the first argument, whose elements the value's are; the output is that argument.
  void write_to_first(size_t index, V value);
  /// The output is `made`, which may share its elements with argument `of`.
  void share(const std::string& of, View made);
  /// What the node takes of the tensor, tensor `index` of the list or argument `name`.
  V taken(View& view, const char* name, size_t index = 0);
  Part part_of(const char* name, size_t index = 0) const;
  /// Whether an imaginary part of 0 stands for a real value of that argument.
  bool is_filled(const char* name, size_t index = 0) const;
  bool names_complex_type(const Argument& argument) const;
  std::pair<double, double> complex_number(const Argument& argument, const char* name);
  /// Where its elements lie, as far as it is known.
  std::optional<Layout> layout_of(const View& view) const;
  /// What is known of the graph's symbols.
  const te::DimFacts& facts() const;
  std::optional<Layout> layout_of(const char* name) { return layout_of(view(given(name)->names.front())); }
  /// Where torch has the elements of a result of the node, as far as it is known.
  std::optional<Layout> layout_made(V value);
  /// The same of what an operator makes in these sizes: rows of rows, element by element, of maps, by cat, by
  /// batch_norm and by convolutions.
  std::optional<Layout> layout_of_rows(const std::vector<te::Dim>& sizes);
  std::optional<Layout> layout_of_elements(const std::vector<te::Dim>& sizes);
  std::optional<Layout> layout_of_maps(const std::vector<te::Dim>& sizes);
  std::optional<Layout> layout_of_joined(const std::vector<te::Dim>& sizes);
  std::optional<Layout> layout_of_batch_norm(const std::vector<te::Dim>& sizes);
  std::optional<Layout> layout_of_conv(const std::vector<te::Dim>& sizes);
  /// Of all tensors among the arguments, in order; nothing where it is not known of one.
  std::optional<std::vector<Layout>> operand_layouts();
  /// Of a new tensor like argument `like` in a format.
  std::optional<Layout> layout_like(V value, const char* like, MemoryFormat format);
  std::vector<int64_t> axes_in_format(MemoryFormat format, size_t rank) const;
  void check_type(const std::string& name, const View& made) const;
  /// Whether the node has that result; of a node that does not say how many there are, it has from now on.
  bool has_output(size_t index);
  /// The name of a number that something before the node made; nothing for another argument.
  const std::string* made_number(const char* name);
  /// The name of the number that the node makes; null where it makes none.
  const std::string* own_number() const;
  [[noreturn]] void bad(const char* name, const std::string& expected) const;

  GraphState& state_;
  const Node& node_;
  const OpRow& row_;
  std::vector<std::string> outputs_;  ///< of tensors
  std::set<std::string, std::less<>> read_;
  V first_own_;
  std::optional<Parts> parts_;
  std::map<size_t, PartResult> made_;
};

/// Converts the node by its row, or as its complex operands want it (complex_values.cc).
void convert_node(NodeContext& node);

/// The type of the results of a node that does not say it, as torch has it.
DType untyped_result(NodeContext& node);

#define PT_CONVERTER(name) void name(NodeContext& node);
#include "compiler/frontend/pytorch/converters/converters.def"
#undef PT_CONVERTER

}  // namespace tensormill::frontend::pytorch
