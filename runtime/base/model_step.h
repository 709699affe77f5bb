/// What compilers and programs that run packages call the step that stands for a whole model
/// (runtime/package/model_step.h). Thread-safety: constants.
#pragma once

#include <cstdint>
#include <string_view>

namespace tensormill {

/// A row of runtime/host_ops, which refuses to run: programs without an interpreter say why by it.
inline constexpr std::string_view kModelStep = "run_model";
/// Its attributes: why there is no plan (text), and which extents of outputs nobody knows: an output's place
/// among the step's results, an axis, and so on.
inline constexpr const char* kModelStepReason = "reason";
inline constexpr const char* kModelStepOpen = "open";

/// Most axes of a tensor in a package.
inline constexpr int64_t kMaxTensorRank = 32;

}  // namespace tensormill
