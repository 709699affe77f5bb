/// The CPU features that code in packages may depend on, and which of them this machine has, read from the
/// processor and of what the system saves. Thread-safety: pure functions over a constant table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensormill {

/// What the operating system must save for a feature to be usable.
enum class CpuFeatureState : uint8_t { kNone = 0, kAvx = 1, kAvx512 = 2, kTiles = 3 };

/// A row of cpu_features.def.
struct CpuFeature {
  std::string_view name;
  std::string_view arch;
  std::string_view implies;  ///< names separated by blanks
  uint32_t leaf;
  uint32_t subleaf;
  char reg;
  int bit;
  CpuFeatureState state;
};

/// Rows of all architectures; each stands after those that it implies.
std::span<const CpuFeature> cpu_features();
/// The row, or null.
const CpuFeature* find_cpu_feature(std::string_view arch, std::string_view name);

/// "x86_64" or "aarch64" of the machine that this program was built for; empty on another one.
std::string_view host_cpu_arch();
/// Whether processor and operating system have it. False for a name that is no row of this architecture: what
/// is not known is not there. That a process must ask the kernel for AMX tiles before it uses them is not
/// looked at.
bool host_has_cpu_feature(std::string_view llvm_name);
/// Those of `required` that this machine lacks, in their order.
std::vector<std::string> missing_cpu_features(const std::vector<std::string>& required);

}  // namespace tensormill
