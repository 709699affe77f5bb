/// Branches of a plan: a host step "branch" in front of the steps that run where its condition has it so.
///
///   branch(condition)
///
/// Attributes: when (1: they run where the condition, bool [1], holds; 0: where it does not), steps (how many
/// of the steps behind it). Of a generic plan, guards (optional): what must hold of the extents for them to
/// run, formulas over dims (names, in the order of the plan's). Of a plan of one shape, refused (text,
/// optional): which of them does not hold, with other_graph (1, optional: the model may take the shape,
/// though the plan does not). Loops are inside of a branch, or around it. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/package/plan_set.h"

namespace tensormill::package {

struct BranchGuard {
  PlanGuard guard;
  bool is_demanded = true;  ///< the model takes nothing else; otherwise other plans may
};

struct Branch {
  size_t step = 0;   ///< the host step
  size_t steps = 0;  ///< behind it
  bool when = true;
  int32_t condition = -1;
  std::vector<std::string> dims = {};
  std::vector<BranchGuard> guards = {};
  std::string refused = {};  ///< or ""
  bool is_other_graph = false;
};

bool begins_branch(const Step& step);
/// The branch at these extents: refused where a guard does not hold, and without guards.
Branch at_extents(Branch branch, std::span<const int64_t> dims);
/// A host step "branch" whose attributes say so.
Step branch_step(const Branch& branch);
/// The shapes of a plan's buffers and the dims of its steps at extents, as the formulas have it, whether or
/// not a run can have those: for one step at a time.
ExecPlan with_extents(const GenericPlan& generic, std::span<const int64_t> dims);
/// In the order of their steps. Throws Error(kInvalidPackage) for a plan whose branches are not as said
/// above.
std::vector<Branch> branches_of(const ExecPlan& plan);

}  // namespace tensormill::package
