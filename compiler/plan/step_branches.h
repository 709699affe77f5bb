/// The steps that begin branches (runtime/package/branches.h), made while the steps of a graph's nodes are.
/// Thread-safety: belongs to one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/branches.h"
#include "runtime/package/branches.h"

namespace tensormill::plan {

class BranchSteps {
public:
  /// The graph and the plan outlive it.
  BranchSteps(const ir::Graph& graph, package::ExecPlan& plan)
      : chains_(ir::branches_around(graph)), plan_(plan) {}

  /// What is added to the plan from now on is the node's: ends the branches that it is not in, and begins
  /// those that it is in, by steps that go to `add_step`. `buffer_for`: of a condition.
  void enter(ir::NodeId node, const std::function<int32_t(ir::ValueId)>& buffer_for,
             const std::function<void(package::Step)>& add_step);
  bool is_inside() const { return !open_.empty(); }
  /// What must hold where a run takes the side.
  void add_guard(const ir::BranchSide& side, const package::BranchGuard& guard);
  /// Behind the last node. `dims`: what the guards' formulas are over.
  void finish(const std::vector<std::string>& dims);

private:
  void leave(size_t depth);

  struct Begun {
    ir::BranchSide side;
    package::Branch branch;
  };
  const std::vector<ir::BranchChain> chains_;
  package::ExecPlan& plan_;
  std::vector<Begun> begun_;
  std::vector<size_t> open_;  ///< of those
};

/// What the dims of a plan that are symbols of branches stand for: free dims, by number. They stand behind
/// the free dims, and before those that a run binds.
struct BranchDims {
  size_t free_dims = 0;
  std::vector<size_t> around;  ///< by dim behind the free ones
};
/// The dims without those of branches.
std::vector<int64_t> without_branches(std::vector<int64_t> all, const BranchDims& dims);
/// The plan in which they are what they stand for.
package::GenericPlan with_dims_around(package::GenericPlan plan, const BranchDims& dims,
                                      const std::vector<std::string>& names);

}  // namespace tensormill::plan
