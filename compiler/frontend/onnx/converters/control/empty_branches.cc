#include "compiler/frontend/onnx/converters/control/empty_branches.h"

#include <algorithm>

#include "compiler/te/dim_facts.h"

namespace tensormill::frontend::onnx {

namespace {

using ir::Relation;
using te::Truth;

/// The side that extents of 0 alone take, where a run decides about them.
std::optional<bool> side_of_none(ir::SymbolTable& table, const ExtentCondition& condition) {
  const auto& [relation, a, b, holds] = condition;
  if (!table.is_run_time(a.expr() - b.expr()) || table.proves_with_zeros(relation, a, b)) return std::nullopt;
  const Truth of_some = table.truth(relation, a, b);
  if (of_some == Truth::kUnknown) return std::nullopt;
  return (of_some == Truth::kProven) != holds;
}

/// What holds on that side.
std::optional<te::DimFacts> facts_of_none(const ir::SymbolTable& table, const ExtentCondition& condition,
                                          bool side) {
  te::DimFacts facts = table.facts_with_zeros();
  const te::Dim a = condition.a.expr(), b = condition.b.expr(), one(1);
  const bool holds = side == condition.holds;
  switch (condition.relation) {
    case Relation::kEqual:
      if (!holds) return std::nullopt;
      facts.assume_equal(a, b);
      return facts;
    case Relation::kLess:
      holds ? facts.assume_le(a + one, b) : facts.assume_le(b, a);
      return facts;
    case Relation::kLessEqual:
      holds ? facts.assume_le(a, b) : facts.assume_le(b + one, a);
      return facts;
  }
  return std::nullopt;
}

/// Of nodes of a branch that is computed although it is not taken.
class Untaken {
public:
  Untaken(StructureContext& context, const te::DimFacts& facts) : context_(context), facts_(facts) {}

  bool are_both_empty(const Binding& none, const Binding& some) const {
    if (none.kind != Binding::Kind::kTensor || some.kind != Binding::Kind::kTensor) return false;
    if (none.tensor == ir::kAbsent || some.tensor == ir::kAbsent) return false;
    const ir::ValueType &a = type(none.tensor), &b = type(some.tensor);
    if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
    for (const ir::ValueId value : {none.tensor, some.tensor}) {
      const DataShape shape = context_.node.data_shape(value);
      if (!shape.is_known || !shape.extents.empty()) return false;
    }
    for (size_t d = 0; d < a.shape.size(); ++d) {
      if (!are_equal(a.shape[d], b.shape[d])) return false;
    }
    return is_empty(b.shape);
  }

  /// Whether no node from the given one on can fail: what reads an element by its index fails where that is
  /// not there, and a check where it does not hold.
  bool runs(size_t first) const {
    const ir::Graph& graph = context_.builder.graph();
    for (size_t i = first; i < graph.nodes().size(); ++i) {
      const ir::Node& node = graph.nodes()[i];
      const bool reads_by_index = node.op.rfind("gather", 0) == 0 || node.op.rfind("scatter", 0) == 0;
      const bool has_known_index =
          reads_by_index && node.inputs.size() > 1 && graph.value(node.inputs[1]).tensor() != nullptr;
      const auto has_elements = [&](ir::ValueId output) { return !is_empty(type(output).shape); };
      const bool has_results = std::any_of(node.outputs.begin(), node.outputs.end(), has_elements);
      if (node.op == "require" || (reads_by_index && !has_known_index && has_results)) return false;
    }
    return true;
  }

private:
  const ir::ValueType& type(ir::ValueId value) const { return context_.builder.graph().value(value).type; }

  bool are_equal(const ir::SymInt& a, const ir::SymInt& b) const {
    return facts_.prove_equal(a.expr(), b.expr()) == Truth::kProven;
  }

  bool is_empty(const ir::SymShape& shape) const {
    return std::any_of(shape.begin(), shape.end(),
                       [&](const ir::SymInt& extent) { return are_equal(extent, 0); });
  }

  StructureContext& context_;
  const te::DimFacts& facts_;
};

}  // namespace

std::optional<std::vector<Binding>> branch_of_some(StructureContext& context,
                                                   const ExtentCondition& condition) {
  // In a branch or a loop nothing is bound, and the symbols are others.
  if (!context.node.binds_symbols()) return std::nullopt;
  ir::SymbolTable& table = *context.builder.graph().symbols();
  const std::optional<bool> side = side_of_none(table, condition);
  if (!side) return std::nullopt;
  const auto convert = [&](bool when) {
    return context.builder.run_body(context.body(when ? "then_branch" : "else_branch"), context.scope, {});
  };
  const auto both = [&]() -> std::optional<std::vector<Binding>> {
    const size_t guards = table.guards().size();
    const std::optional<std::vector<Binding>> none = convert(*side);
    context.builder.leave_dead_nodes();
    // What that branch demands holds where it is taken.
    if (!none || table.guards().size() != guards) return std::nullopt;
    const size_t first = context.builder.graph().nodes().size();
    std::optional<std::vector<Binding>> some = convert(!*side);
    const std::optional<te::DimFacts> facts = facts_of_none(table, condition, *side);
    if (!facts || !some || some->size() != none->size()) return std::nullopt;
    const Untaken untaken(context, *facts);
    const auto are_both_empty = [&](const Binding& a, const Binding& b) {
      return untaken.are_both_empty(a, b);
    };
    const bool fits = std::equal(none->begin(), none->end(), some->begin(), are_both_empty);
    return fits && untaken.runs(first) ? some : std::nullopt;
  };
  return context.builder.attempt([&]() -> std::optional<std::vector<Binding>> {
    try {
      return both();
    } catch (const BranchFails&) {
      return std::nullopt;
    } catch (const Error& error) {
      // A branch for other shapes than the model's own.
      if (error.code() != ErrorCode::kInvalidModel) throw;
      return std::nullopt;
    }
  });
}

}  // namespace tensormill::frontend::onnx
