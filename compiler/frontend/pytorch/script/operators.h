/// Calls of operators in TorchScript's code: each becomes a node that the converters of exported programs
/// take (aten_ops.def). Thread-safety: as the graph.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/build/missing.h"
#include "compiler/frontend/pytorch/node_context.h"
#include "compiler/frontend/pytorch/script/module.h"
#include "compiler/frontend/pytorch/script/value.h"
#include "compiler/frontend/wire/work_budget.h"

namespace tensormill::frontend::pytorch::script {

/// A call with its arguments as they stand.
struct Call {
  std::string name;  ///< "aten.relu"
  std::vector<Value> arguments;
  std::vector<std::pair<std::string, Value>> keywords;
  Place place;
  std::string hint;  ///< how its result is called
};

/// Whether any operator of that name is imported, whatever its overload.
bool has_operator(const std::string& name);

class Operators {
public:
  Operators(GraphState& state, build::Missing& missing) : state_(state), missing_(missing) {}

  /// What the operator gives; Lost where it is not implemented, which is noted, or an operand is lost.
  Value call(const Call& call);
  /// "_operator.add" of numbers.
  Value number(const std::string& target, const std::vector<Value>& operands, const Call& call);
  /// A number as a tensor without dims.
  Value tensor_of(const Value& number, const Call& call);
  /// The number in a tensor of one element, where the graph knows it; UnsupportedForm is noted, and lost.
  Value number_in(const Value& tensor, const Call& call);
  /// A tensor with these elements.
  Value constant(Tensor tensor, const Call& call);
  /// A tensor of the file, as `name`.
  Value stored(const StoredTensor& tensor, const std::string& name);
  /// A constant of the code.
  Value constant_of(const PickleValue& value, const std::string& name);
  /// What stands in the file.
  Value of(const PickleValue& value, const std::string& path);

  /// What stands for the tensor in the graph.
  ir::ValueId value_of(const Value& tensor, const Call& call);
  bool is_complex(const Value& tensor) const;
  /// Its extents, and the type of its elements, or of their parts. Throws Error(kNotSupported) where a run
  /// decides about one.
  ir::ValueType type_of(const Value& tensor, const Call& call);
  ir::SymShape shape_of(const Value& tensor, const Call& call) { return type_of(tensor, call).shape; }
  /// `why`: "" where there is nothing of the operator.
  void note_missing(const std::string& what, const std::string& why, const Call& call);
  /// The names of graph values must not meet those of variables.
  void reserve(const std::string& name) { taken_.insert(name); }
  build::Missing& missing() { return missing_; }
  /// Elements of lists and texts that are made. Throws Error(kInvalidModel) past 4 million of them.
  void spend(uint64_t elements) { elements_.spend(elements); }

private:
  ir::ValueId read(const Value& tensor, const Call& call);
  Call with_numbers(Call call);
  const OpRow* row_of(const Call& call) const;
  Value as_number(const OpRow& row, size_t index, const Value& value, const Call& call);
  Node node_of(const OpRow& row, const Call& call);
  Argument argument_of(const Value& value, const std::string& name, const Call& call);
  Json number_json(const Value& value);
  bool convert(NodeContext& context, const OpRow& row, const Call& call);
  Value results_of(const NodeContext& context, const OpRow& row) const;
  std::string unique(const std::string& hint);

  GraphState& state_;
  build::Missing& missing_;
  std::set<std::string> taken_, scalars_;
  std::map<std::string, size_t> counts_;
  std::map<const StoredTensor*, std::string> stored_;
  size_t converted_ = 0, numbers_ = 0, lost_numbers_ = 0;
  wire::WorkBudget elements_{"elements of lists", uint64_t{1} << 22};
};

}  // namespace tensormill::frontend::pytorch::script
