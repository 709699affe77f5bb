/// What a package says of itself: of its plans, and of its inputs and outputs beside their types.
/// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/ir/variants.h"
#include "runtime/package/metadata.h"
#include "runtime/package/plan_memory.h"
#include "runtime/package/plan_set.h"

namespace tensormill::driver {

/// Sets what the model says of `ports`, by their names; a port that is of real numbers itself stands for
/// none.
inline void describe_values(const ir::Variants& variants, std::vector<package::TensorInfo>& ports) {
  for (package::TensorInfo& port : ports) {
    const auto scale = variants.quantizations.find(port.name);
    if (scale != variants.quantizations.end() && is_integer(port.dtype)) port.quantization = scale->second;
    const auto said = variants.notes.find(port.name);
    if (said != variants.notes.end()) port.notes = said->second;
  }
}

/// Adds what its plans take: steps, constants and operations of the first, memory of the largest.
inline void describe_plans(const package::PlanSet& set, package::Metadata& metadata) {
  const package::ExecPlan& plan = set.first();
  metadata.num_steps = static_cast<int64_t>(plan.steps.size());
  metadata.weight_bytes = plan.params_bytes;
  for (const package::PlanVariant& variant : set.variants) {
    const package::MemoryPlan memory = package::plan_memory(variant.plan);
    metadata.arena_bytes = std::max(metadata.arena_bytes, memory.arena_bytes);
    metadata.worker_workspace_bytes =
        std::max(metadata.worker_workspace_bytes, memory.worker_workspace_bytes);
  }
  for (const package::Step& step : plan.steps) {
    metadata.host_steps += step.kind == package::StepKind::kHost ? 1 : 0;
    metadata.flops += step.flops;
  }
}

/// " N=8 H=32", or "" for a package without free dims.
inline std::string title_of(const std::vector<std::string>& names, const std::vector<int64_t>& dims) {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i) text += " " + names[i] + "=" + std::to_string(dims[i]);
  return text;
}

}  // namespace tensormill::driver
