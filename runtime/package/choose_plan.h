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

/// `dims` themselves where there is a plan for them. Else those that the inputs show and a generic plan makes
/// of others have their values: of the first one that keeps the dims that are `named`, or of the first of
/// all.
std::vector<int64_t> settled_dims(const PlanSet& set, const std::vector<int64_t>& dims,
                                  const std::vector<std::optional<int64_t>>& named);

}  // namespace tensormill::package
