/// Branches of an If whose extents are expressions over the graph's symbols: each sees what is around it with
/// symbols of its own, so that what its nodes demand holds where it is taken. Thread-safety: as the builder.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>

#include "compiler/frontend/onnx/graph/builder.h"
#include "compiler/ir/branch_symbols.h"

namespace tensormill::frontend::onnx {

/// What a condition says of extents: that the relation of a and b holds, or that it does not.
struct ExtentCondition {
  ir::Relation relation = ir::Relation::kEqual;
  ir::SymInt a, b;
  bool holds = true;
};
/// Nothing where the condition is none of two integers that are known but for symbols.
std::optional<ExtentCondition> extent_condition(const ir::Graph& graph, ir::ValueId condition);
/// The names of the graphs around that the body reads, its own subgraphs included.
std::set<std::string> captured_names(const GraphProto& body, const Scope& around);
/// 1 where the condition holds, else 0.
ir::SymInt as_number(const ExtentCondition& condition);

/// Both branches of an If.
class BranchSymbols {
public:
  /// `condition` (bool [1]) chooses; `of_extents` is what it says of extents, if anything.
  BranchSymbols(StructureContext& context, ir::ValueId condition, std::optional<ExtentCondition> of_extents);

  int64_t number(bool when) const { return numbers_[when ? 0 : 1]; }
  const std::optional<ExtentCondition>& of_extents() const { return of_extents_; }
  /// That the condition holds, or does not, becomes a fact of the branch. Whether it can be.
  bool assume(bool when);
  /// The names around that the branch reads, as it sees them.
  Scope entered(bool when);
  ir::SymInt inside(const ir::SymInt& value, bool when) const { return ir::inside(value, number(when)); }
  ir::SymInt outside(const ir::SymInt& value, bool when) const { return ir::outside(value, number(when)); }

private:
  Binding entered(const Binding& binding, bool when);
  ir::ValueId entered(ir::ValueId value, bool when);

  StructureContext& context_;
  ir::ValueId condition_;
  std::optional<ExtentCondition> of_extents_;
  std::array<std::set<std::string>, 2> captured_;  ///< names around that each branch reads
  std::array<int64_t, 2> numbers_ = {};
};

}  // namespace tensormill::frontend::onnx
