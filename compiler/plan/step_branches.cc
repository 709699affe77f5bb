#include "compiler/plan/step_branches.h"

#include <algorithm>

namespace tensormill::plan {

void BranchSteps::enter(ir::NodeId node, const std::function<int32_t(ir::ValueId)>& buffer_for,
                        const std::function<void(package::Step)>& add_step) {
  if (chains_.empty()) return;
  const ir::BranchChain& chain = chains_[static_cast<size_t>(node)];
  size_t depth = 0;
  while (depth < open_.size() && depth < chain.size() && begun_[open_[depth]].side == chain[depth]) ++depth;
  leave(depth);
  for (; depth < chain.size(); ++depth) {
    package::Branch branch;
    branch.when = chain[depth].when;
    branch.condition = buffer_for(chain[depth].condition);
    branch.step = plan_.steps.size();
    add_step(package::branch_step(branch));
    open_.push_back(begun_.size());
    begun_.push_back({chain[depth], std::move(branch)});
  }
}

void BranchSteps::leave(size_t depth) {
  for (; open_.size() > depth; open_.pop_back()) {
    package::Branch& last = begun_[open_.back()].branch;
    last.steps = plan_.steps.size() - last.step - 1;
  }
}

void BranchSteps::add_guard(const ir::BranchSide& side, const package::BranchGuard& guard) {
  for (Begun& each : begun_) {
    if (each.side == side) each.branch.guards.push_back(guard);
  }
}

void BranchSteps::finish(const std::vector<std::string>& dims) {
  leave(0);
  for (Begun& each : begun_) {
    if (!each.branch.guards.empty()) each.branch.dims = dims;
    plan_.steps[each.branch.step].attributes = package::branch_step(each.branch).attributes;
  }
}

namespace {

class Around {
public:
  /// `names`: of the free dims and of those that a run binds.
  Around(const BranchDims& dims, std::vector<std::string> names) : dims_(dims), names_(std::move(names)) {}

  size_t of(size_t dim) const {
    if (dim < dims_.free_dims) return dim;
    const size_t own = dim - dims_.free_dims;
    return own < dims_.around.size() ? dims_.around[own] : dim - dims_.around.size();
  }

  DimFormula of(DimFormula formula) const {
    for (DimProduct& product : formula.products) {
      for (DimTerm& term : product.factors)
        term.dim = static_cast<int32_t>(of(static_cast<size_t>(term.dim)));
      std::sort(product.factors.begin(), product.factors.end());
    }
    std::sort(formula.products.begin(), formula.products.end());
    return formula;
  }

  /// `dims`: how many of the names the formula is over.
  Extent of(const Extent& extent, size_t dims) const {
    std::vector<Extent::Op> ops = extent.ops();
    for (Extent::Op& op : ops) {
      if (op.code == Extent::Code::kSymbol)
        op.value = static_cast<int64_t>(of(static_cast<size_t>(op.value)));
    }
    return {std::move(ops), {names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(dims)}};
  }

  void apply(package::PlanGuard& guard, size_t dims) const {
    guard.left = of(guard.left, dims);
    guard.right = of(guard.right, dims);
  }

private:
  const BranchDims& dims_;
  const std::vector<std::string> names_;
};

}  // namespace

std::vector<int64_t> without_branches(std::vector<int64_t> all, const BranchDims& dims) {
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(dims.free_dims);
  all.erase(first, first + static_cast<std::ptrdiff_t>(dims.around.size()));
  return all;
}

package::GenericPlan with_dims_around(package::GenericPlan plan, const BranchDims& dims,
                                      const std::vector<std::string>& names) {
  if (dims.around.empty()) return plan;
  std::vector<std::string> all = names;
  for (const package::RunDim& run : plan.run_dims) all.push_back(run.name);
  const Around around(dims, all);
  for (std::vector<int64_t>* each : {&plan.dims, &plan.multiples, &plan.minimums})
    each->resize(dims.free_dims);
  for (std::vector<package::PlanHole>* holes : {&plan.buffer_holes, &plan.step_holes}) {
    for (package::PlanHole& hole : *holes) hole.value = around.of(std::move(hole.value));
  }
  for (DerivedExtent& derived : plan.derived) derived.formula = around.of(*derived.formula, all.size());
  for (package::PlanGuard& guard : plan.guards) around.apply(guard, names.size());
  for (package::PlanGuard& guard : plan.run_guards) around.apply(guard, all.size());
  for (package::Branch& branch : package::branches_of(plan.plan)) {
    for (package::BranchGuard& each : branch.guards) around.apply(each.guard, names.size());
    if (!branch.guards.empty()) branch.dims = names;
    plan.plan.steps[branch.step].attributes = package::branch_step(branch).attributes;
  }
  // What is written down is what the dims that are left make it.
  std::vector<int64_t> at_dims = plan.dims;
  for (const package::RunDim& run : plan.run_dims) at_dims.push_back(run.sample);
  package::ExecPlan at = package::instantiate(plan, at_dims, names);
  for (size_t i = 0; i < at.steps.size(); ++i) at.steps[i].attributes = plan.plan.steps[i].attributes;
  plan.plan = std::move(at);
  return plan;
}

}  // namespace tensormill::plan
