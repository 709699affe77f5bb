/// Converters: how one ONNX operator becomes graph operators. A converter is a function in converters/ and a
/// row of onnx_ops.def; it sees its node through NodeContext. Thread-safety: pure functions of the context.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/extents/data_extents.h"
#include "compiler/frontend/onnx/import.h"
#include "compiler/frontend/onnx/model/model_proto.h"
#include "compiler/ir/graph.h"

namespace tensormill::frontend::onnx {

using build::Compose;
using build::kMaxListed;
using build::UnsupportedForm;

/// The operand `what` of a node must be known while the graph is built, and depends on these graph inputs.
struct ValueRequired {
  std::string what;
  std::vector<std::string> inputs;
};

struct OpRow;

class NodeContext : public build::OpBuilder {
public:
  NodeContext(ir::Graph& graph, DataExtents& extents, const NodeProto& node, const std::string& label,
              int64_t opset, std::vector<ir::ValueId> inputs, const ModelSource& source,
              const std::set<std::string>& reserved_names, const ImportForm& form, ir::ValueId guard);

  const NodeProto& node() const { return node_; }
  int64_t opset() const { return opset_; }
  const Digest& source_digest() const;  ///< of the model
  bool stacks_elements() const { return form_.stacks_elements; }
  ir::ValueId guard() const { return guard_; }  ///< GraphBuilder::guard

  size_t num_inputs() const { return inputs_.size(); }
  size_t num_outputs() const { return node_.outputs.size(); }
  /// kAbsent when the operand is not given.
  ir::ValueId optional_input(size_t index) const {
    return index < inputs_.size() ? inputs_[index] : ir::kAbsent;
  }
  bool has_input(size_t index) const { return optional_input(index) != ir::kAbsent; }
  /// Throws Error(kInvalidModel) when the operand is missing.
  ir::ValueId input(size_t index) const;
  /// Integers of an operand whose value is known while the graph is built; throws ValueRequired otherwise.
  ir::SymShape known_ints(size_t index, const char* what) const;
  const Tensor& known(size_t index, const char* what) const;
  /// One of one element; throws Error(kInvalidModel) for another number of them.
  const Tensor& known_scalar(size_t index, const char* what) const;
  const Tensor& known_value(ir::ValueId value, const char* what) const;
  /// The same, whose integers may be symbolic.
  const ir::KnownValue& known_symbolic(ir::ValueId value, const char* what) const;
  bool is_known(size_t index) const { return is_computable(input(index)); }
  bool is_computable(ir::ValueId value) const;  ///< whether known_value knows it
  /// Throws ValueRequired when an extent of the operand may depend on data.
  void require_fixed_shape(size_t index) const;
  /// For operators that take data-dependent extents as symbols alone: throws ValueRequired when x has one
  /// with a capacity along an axis from `first` on. What is imported with symbols has it bound instead.
  void require_bound_extents(ir::ValueId x, int64_t first = 0) const;
  /// What data decides about a value's extents.
  DataShape data_shape(ir::ValueId value) const { return extents_.shape_of(value); }
  /// The same of the operand; throws ValueRequired when that is not known.
  DataShape data_shape_of(size_t index) const;
  /// The graph's inputs of a few integers that decide about extents of operands, if nothing else does.
  std::vector<std::string> deciding_numbers() const;
  /// Whether integers that a run works out become symbols of the graph: in an import with symbols, but in no
  /// branch, whose numbers may mean nothing where it is not taken, and in bodies of loops whose iterations
  /// bind them anew (LoopForm::binds_symbols).
  bool binds_symbols() const {
    return graph().symbols() != nullptr && guard_ == ir::kAbsent && extents_.binds_in_loops();
  }
  /// Of how many loops the body is converted that the node is in.
  size_t loops_around() const { return extents_.loops_around(); }
  /// The integers of a small value, those that a run works out as symbols that it binds (ir/run_dims.h); what
  /// is built takes those of `low` or more. Throws ValueRequired where binds_symbols() is false, or there are
  /// too many.
  ir::SymShape symbolic_ints(ir::ValueId value, const char* what, std::optional<int64_t> low = std::nullopt);
  /// Operands that are lists of a free length have the one that the node's other operands demand
  /// (list_operands.def) from here on. Throws Error(kInvalidModel) where they cannot.
  void bind_list_lengths();
  /// Operands that say how large something is (extent_operands.def), and that a run works out, are such
  /// symbols from here on.
  void bind_operands();
  /// `result` has the elements of x in the same order, in a shape of the run.
  void set_reshaped(ir::ValueId result, ir::ValueId x) { extents_.reshaped().emplace(result, x); }
  /// What a value in a shape of the run was reshaped from, where it is known: the product of the extents is
  /// known of its elements alone.
  ir::ValueId before_reshapes(ir::ValueId x) const;
  /// x as long as the count (i64 [1]) of a run says, which is within [0, the axis' extent].
  ir::ValueId dynamic_prefix(ir::ValueId x, ir::ValueId count, int64_t axis);
  bool same_count(ir::ValueId a, ir::ValueId b) const { return extents_.same_count(a, b); }  ///< in each run

  bool has_attr(const char* name) const { return node_.find(name) != nullptr; }
  int64_t int_attr(const char* name, int64_t fallback) const;
  double float_attr(const char* name, double fallback) const;
  std::string string_attr(const char* name, const std::string& fallback) const;
  ir::Ints ints_attr(const char* name, std::vector<int64_t> fallback) const;
  /// Throws Error(kInvalidModel) when a required attribute is missing.
  int64_t required_int(const char* name) const;
  ir::Ints required_ints(const char* name) const;
  /// A type of numbers or bools.
  DType dtype_attr(const char* name) const;
  /// A tensor of no strings.
  Tensor tensor_attr(const char* name) const;
  Tensor any_tensor_attr(const char* name) const;
  /// Defines output `index`; a value that stood before this node is passed through an identity, so that each
  /// name of the model is one value.
  void set_output(size_t index, ir::ValueId value);
  const std::vector<ir::ValueId>& outputs() const { return outputs_; }
  /// Over axes that may be as long as data says.
  ir::ValueId add_reduction(const std::string& op, ir::ValueId x, const ir::Attrs& attrs) override;
  /// What the row of onnx_ops.def makes of the node for these operands, none of which holds strings.
  std::vector<ir::ValueId> results_of_row(const std::vector<ir::ValueId>& operands);
  /// What the newest row of another operator makes of the node's attributes and these operands.
  std::vector<ir::ValueId> results_as(std::string_view domain, std::string_view op,
                                      const std::vector<ir::ValueId>& operands);

protected:
  /// Of operands whose extents depend on data, those that meet are made as long.
  void fit_operands(const std::string& op, std::vector<ir::ValueId>& inputs, const ir::Attrs& attrs) override;
  /// Results whose extent data decides are made as long as the run's count of them.
  void fit_results(std::vector<ir::ValueId>& results) override;

private:
  /// The symbols for the elements of a value of i64 [n], one node for all.
  ir::SymShape bind_numbers(ir::ValueId numbers, std::optional<int64_t> low,
                            const std::optional<ir::SymInt>& high);
  std::vector<ir::ValueId> results_of(const OpRow* row, const std::vector<ir::ValueId>& operands);

  DataExtents& extents_;
  const NodeProto& node_;
  int64_t opset_;
  std::vector<ir::ValueId> inputs_;
  const ModelSource& source_;
  const std::set<std::string>& reserved_;
  const ImportForm& form_;
  ir::ValueId guard_;
  std::vector<ir::ValueId> outputs_;
  mutable std::map<ir::ValueId, ir::KnownValue> evaluated_;  ///< values that `known` worked out
};

using Converter = void (*)(NodeContext& context);
/// Static check of a node's attributes: what is not implemented, before any work.
using FormCheck = std::optional<UnsupportedForm> (*)(const NodeProto& node, int64_t opset);

struct OpRow {
  std::string_view domain;  ///< "" is ai.onnx
  std::string_view op;
  int64_t since;  ///< opsets from … to that the converter covers
  int64_t until;
  Converter convert;
  FormCheck check;
};
const std::vector<OpRow>& op_rows();
/// The converter of text_ops.def for operands that hold strings, or null.
Converter find_text_op(std::string_view domain, std::string_view op);
/// The row for the operator at the opset of the standard operators, or null.
const OpRow* find_op(std::string_view domain, std::string_view op, int64_t opset);
bool is_known_op(std::string_view domain, std::string_view op);
bool is_known_domain(std::string_view domain);

inline constexpr int64_t kMinOpset = 1;
inline constexpr int64_t kMaxOpset = 27;

}  // namespace tensormill::frontend::onnx
