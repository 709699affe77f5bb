/// Which of a package's plans serve a shape. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/package/plan_set.h"

namespace tensormill::package {

/// The generic plans whose inputs have the extents that `dims` say.
std::vector<const GenericPlan*> plans_taking(const PlanSet& set, const std::vector<int64_t>& dims);
/// Whether a variant or a generic plan takes exactly these dims.
bool has_plan(const PlanSet& set, const std::vector<int64_t>& dims);

/// `dims` themselves where there is a plan for them. Else `dims` with the dependent ones as a generic plan
/// derives them from the others: the first plan that keeps the values in `named` (nothing: any value will
/// do), or the first of all.
std::vector<int64_t> settled_dims(const PlanSet& set, const std::vector<int64_t>& dims,
                                  const std::vector<std::optional<int64_t>>& named);

}  // namespace tensormill::package
