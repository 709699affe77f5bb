#include "compiler/driver/warn_of_shapes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "runtime/package/model_step.h"

namespace tensormill::driver {

namespace {

/// The one extent of each free dim that inputs of the generic plan have, if it is one.
std::map<std::string, int64_t> single_extents(const package::PlanSet& set) {
  std::map<std::string, int64_t> single;
  const auto is_hole = [&](int32_t buffer, size_t axis) {
    return std::any_of(set.generic->buffer_holes.begin(), set.generic->buffer_holes.end(),
                       [&](const package::PlanHole& hole) {
                         return hole.owner == buffer && hole.position == static_cast<int32_t>(axis);
                       });
  };
  const package::ExecPlan& plan = set.generic->plan;
  for (size_t i = 0; i < set.input_shapes.size(); ++i) {
    const int32_t buffer = plan.inputs[i].buffer;
    for (size_t d = 0; d < set.input_shapes[i].size(); ++d) {
      const std::string* name = std::get_if<std::string>(&set.input_shapes[i][d]);
      if (name != nullptr && !is_hole(buffer, d))
        single[*name] = plan.buffers[static_cast<size_t>(buffer)].shape[d];
    }
  }
  return single;
}

/// "x_0 is 3", of dims that inputs leave free and the model does not. Where there are special plans a dim may
/// have another extent in those.
std::string fixed_dims(const package::PlanSet& set) {
  if (!set.generic || !set.special.empty()) return "";
  std::string text;
  for (const auto& [name, extent] : single_extents(set))
    text += (text.empty() ? "" : ", ") + name + " is " + std::to_string(extent);
  return text;
}

/// The first few of those that a person can read, and how many others there are.
std::string joined(const std::vector<std::string>& conditions) {
  constexpr size_t kMostShown = 8, kMostLetters = 120;
  std::set<std::string> seen;
  std::string all;
  size_t shown = 0;
  for (const std::string& condition : conditions) {
    if (!seen.insert(condition).second || shown == kMostShown || condition.size() > kMostLetters) continue;
    all += (all.empty() ? "" : ", ") + condition;
    ++shown;
  }
  const std::string others = std::to_string(seen.size() - shown);
  if (shown == seen.size()) return all;
  return all.empty() ? others + " conditions on extents hold"
                     : all + ", and " + others + " more conditions hold";
}

}  // namespace

std::string warn_of_shapes(const package::PlanSet& set, const std::string& refused,
                           const std::vector<std::string>& conditions) {
  const package::ExecPlan& plan = set.first();
  if (package::is_model_step(plan))
    return "there are no kernels, and each run is interpreted, which is slow; input_values make kernels: " +
           package::model_step_reason(plan);
  if (!refused.empty()) return "shapes without a plan are interpreted, which is slow: " + refused;
  std::string warning = fixed_dims(set);
  if (!warning.empty())
    warning = "of dims that inputs leave free the model takes one extent alone: " + warning;
  if (!set.model || !set.generic || conditions.empty()) return warning;
  return warning + (warning.empty() ? "" : "; ") +
         "some shapes have no kernels and are interpreted, which is slow: there are kernels where " +
         joined(conditions) + "; shape_buckets make more";
}

}  // namespace tensormill::driver
