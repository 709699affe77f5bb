#include "runtime/package/choose_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/package/segments.h"

namespace tensormill::package {

namespace {

/// Calls visit(free dim, hole or null, extent of the plan) for each extent of an input that a free dim names.
/// A plan has many more holes than its inputs have: they are looked at once.
template <typename Visit>
void for_each_named(const PlanSet& set, const GenericPlan& generic, const Visit& visit) {
  const ExecPlan& plan = generic.plan;
  std::map<std::pair<int32_t, int32_t>, const PlanHole*> holes;  // of inputs, by buffer and position
  for (const PlanHole& hole : generic.buffer_holes) {
    if (plan.buffers[static_cast<size_t>(hole.owner)].kind == BufferKind::kInput)
      holes.emplace(std::pair(hole.owner, hole.position), &hole);
  }
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    for (size_t position = 0; position < set.input_shapes[i].size(); ++position) {
      const auto* name = std::get_if<std::string>(&set.input_shapes[i][position]);
      if (name == nullptr) continue;
      const auto dim = std::find(set.free_dims.begin(), set.free_dims.end(), *name) - set.free_dims.begin();
      const auto hole = holes.find({plan.inputs[i].buffer, static_cast<int32_t>(position)});
      visit(static_cast<size_t>(dim), hole == holes.end() ? nullptr : hole->second,
            std::get<int64_t>(plan.inputs[i].shape[position]));
    }
  }
}

std::vector<int64_t> settled(const PlanSet& set, const GenericPlan& generic, std::vector<int64_t> dims) {
  for_each_named(set, generic, [&](size_t dim, const PlanHole* hole, int64_t) {
    if (hole != nullptr) dims[dim] = evaluate(hole->value, formula_dims(generic, dims));
  });
  return dims;
}

bool takes_exactly(const PlanSet& set, const GenericPlan& generic, const std::vector<int64_t>& dims) {
  if (!is_within(generic, dims)) return false;
  bool is_taken = true;
  const std::vector<int64_t> all = formula_dims(generic, dims);
  for_each_named(set, generic, [&](size_t dim, const PlanHole* hole, int64_t extent) {
    is_taken = is_taken && dims[dim] == (hole != nullptr ? evaluate(hole->value, all) : extent);
  });
  return is_taken;
}

/// Dims of which one plan's formulas are too large are another one's.
bool takes(const PlanSet& set, const GenericPlan& generic, const std::vector<int64_t>& dims) {
  try {
    return takes_exactly(set, generic, dims);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kMemoryBudget) throw;
    return false;
  }
}

std::vector<const GenericPlan*> generics_of(const PlanSet& set) {
  std::vector<const GenericPlan*> all;
  if (set.generic) all.push_back(&*set.generic);
  for (const GenericPlan& special : set.special) all.push_back(&special);
  return all;
}

}  // namespace

std::vector<const GenericPlan*> plans_taking(const PlanSet& set, const std::vector<int64_t>& dims) {
  std::vector<const GenericPlan*> plans = generics_of(set);
  plans.erase(std::remove_if(plans.begin(), plans.end(),
                             [&](const GenericPlan* generic) { return !takes(set, *generic, dims); }),
              plans.end());
  return plans;
}

bool has_plan(const PlanSet& set, const std::vector<int64_t>& dims) {
  return std::any_of(set.variants.begin(), set.variants.end(),
                     [&](const PlanVariant& variant) { return variant.dims == dims; }) ||
         !plans_taking(set, dims).empty();
}

std::vector<int64_t> settled_dims(const PlanSet& set, const std::vector<int64_t>& dims,
                                  const std::vector<std::optional<int64_t>>& named) {
  if (!set.generic || has_plan(set, dims)) return dims;
  const std::vector<int64_t> first = settled(set, *set.generic, dims);
  for (const GenericPlan* generic : generics_of(set)) {
    std::vector<int64_t> own = settled(set, *generic, dims);
    bool is_kept = takes(set, *generic, own);
    for (size_t dim = 0; dim < own.size(); ++dim)
      is_kept = is_kept && named[dim].value_or(own[dim]) == own[dim];
    if (is_kept) return own;
  }
  return first;
}

}  // namespace tensormill::package
