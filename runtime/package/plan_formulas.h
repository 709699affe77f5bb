/// Formulas over free dims as members of mod.json, and what of them a package holds.
/// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/extents/dim_formula.h"
#include "runtime/base/json.h"
#include "runtime/package/json_fields.h"
#include "runtime/package/plan_set.h"

namespace tensormill::package {

/// Numbers of a formula are between its negative and itself.
inline constexpr int64_t kMaxFormulaNumber = int64_t{1} << 40;
inline constexpr size_t kMaxFormulaProducts = 64;
inline constexpr size_t kMaxFormulaFactors = 128;

/// Whether a package holds the formula, as no other one is read back.
bool fits_package(const DimFormula& formula);
bool fits_package(const DerivedExtent& extent);

/// Members "offset" and "products".
Json formula_to_json(const DimFormula& formula);
/// Of an object that may have other members; its dims are below `dims`.
DimFormula formula_from_json(JsonFields& fields, size_t dims);

Json derived_to_json(const std::vector<DerivedExtent>& derived);
/// Member "derived", if there is one: each over the free dims, of those names, and those before it.
std::vector<DerivedExtent> derived_from_json(JsonFields& fields, std::span<const std::string> free_dims);

/// Members "left", "relation", "right" and "node".
Json guard_to_json(const PlanGuard& guard);
/// Of an object that may have other members.
PlanGuard guard_from_json(JsonFields& fields, std::span<const std::string> free_dims);
Json guards_to_json(const std::vector<PlanGuard>& guards);
/// The member, if there is one.
std::vector<PlanGuard> guards_from_json(JsonFields& fields, std::string_view key,
                                        std::span<const std::string> dims);
Json run_dims_to_json(const std::vector<RunDim>& dims);
/// Member "run_dims", if there is one.
std::vector<RunDim> run_dims_from_json(JsonFields& fields);
/// Nothing where the guard holds; else what it says of its node and both numbers.
std::optional<std::string> broken_by(const PlanGuard& guard, std::span<const int64_t> dims);

}  // namespace tensormill::package
