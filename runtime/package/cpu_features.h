/// Which of LLVM's CPU features this machine has, asked of the processor and of what the system saves.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensormill::package {

/// False for a name that is not in cpu_features.def: what is not known is not there.
bool host_has_cpu_feature(std::string_view llvm_name);
/// Those of `required` that this machine lacks, in their order.
std::vector<std::string> missing_cpu_features(const std::vector<std::string>& required);

}  // namespace tensormill::package
