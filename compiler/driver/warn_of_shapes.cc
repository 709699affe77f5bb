#include "compiler/driver/warn_of_shapes.h"

#include "runtime/package/model_step.h"

namespace tensormill::driver {

namespace {

/// "T from 224 to 351", of those dims that do not take every extent.
std::string ranges_of(const package::PlanSet& set) {
  std::string text;
  for (size_t d = 0; d < set.free_dims.size(); ++d) {
    const int64_t least = set.generic->minimums[d];
    const bool has_most = !set.generic->maximums.empty() && set.generic->maximums[d] < package::kMaxFreeDim;
    if (least <= 1 && !has_most) continue;
    text += (text.empty() ? "" : ", ") + set.free_dims[d] + " from " + std::to_string(least);
    if (has_most) text += " to " + std::to_string(set.generic->maximums[d]);
  }
  return text;
}

}  // namespace

std::string warn_of_shapes(const package::PlanSet& set, const std::string& refused) {
  const package::ExecPlan& plan = set.first();
  if (package::is_model_step(plan))
    return "there are no kernels, and each run is interpreted, which is slow; input_values make kernels: " +
           package::model_step_reason(plan);
  if (!refused.empty()) return "shapes without a plan are interpreted, which is slow: " + refused;
  if (!set.model || !set.generic) return "";
  const std::string ranges = ranges_of(set);
  if (ranges.empty()) return "";
  return "some shapes have no kernels and are interpreted, which is slow: there are kernels for " + ranges +
         "; shape_buckets make more";
}

}  // namespace tensormill::driver
