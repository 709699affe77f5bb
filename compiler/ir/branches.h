/// Branches of a graph, which is flat: a choose gives one of two values as a condition of the run has it, and
/// what is computed for one of them alone is run where the condition has it so. Thread-safety: pure
/// functions.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::ir {

/// choose: condition (bool [1]), the value where it holds, and where it does not. enter_branch: a value of
/// the outside as a branch sees it, with the branch's own symbols (SymbolTable::add_branch) in its type.
inline constexpr std::string_view kChoose = "choose", kEnterBranch = "enter_branch";
/// Attributes of a choose: the numbers of its branches, where they have symbols of their own.
inline constexpr const char *kThenBranch = "then_branch", *kElseBranch = "else_branch";

/// What has to be for a node to be run.
struct BranchSide {
  ValueId condition = kAbsent;
  bool when = true;
  bool operator==(const BranchSide&) const = default;
};
/// The outermost first; empty for what always runs.
using BranchChain = std::vector<BranchSide>;

/// By node: the longest chain of sides that all of its uses have in common. What a loop's body reads and does
/// not change is in no side whose condition is in the body. Empty for a graph without a choose.
std::vector<BranchChain> branches_around(const Graph& graph);

/// The nodes in an order in which what belongs to a side stands behind the condition, right before the choose
/// that reads it.
std::vector<NodeId> branch_order(const Graph& graph);

}  // namespace tensormill::ir
