#include "runtime/base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace tensormill {
namespace {

constexpr CpuFeature kFeatures[] = {
#define TM_CPU_FEATURE(name, arch, implies, leaf, subleaf, reg, bit, state) \
  {name, arch, implies, leaf, subleaf, reg, bit, static_cast<CpuFeatureState>(state)},
#include "runtime/base/cpu_features.def"
#undef TM_CPU_FEATURE
};

#if defined(__x86_64__)

constexpr std::string_view kHostArch = "x86_64";

/// XCR0: what the operating system saves.
uint64_t saved_state() {
  uint32_t regs[4] = {};
  constexpr uint32_t kOsXsave = 1u << 27;
  if (__get_cpuid(1, &regs[0], &regs[1], &regs[2], &regs[3]) == 0 || (regs[2] & kOsXsave) == 0) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

uint64_t needed_bits(CpuFeatureState state) {
  switch (state) {
    case CpuFeatureState::kNone:
      return 0;
    case CpuFeatureState::kAvx:
      return 0x6;
    case CpuFeatureState::kAvx512:
      return 0xe6;
    case CpuFeatureState::kTiles:
      return 0x60000;
  }
  return ~uint64_t{0};
}

bool has_feature(const CpuFeature& feature) {
  uint32_t regs[4] = {};
  if (__get_cpuid_count(feature.leaf, feature.subleaf, &regs[0], &regs[1], &regs[2], &regs[3]) == 0)
    return false;
  const uint64_t needed = needed_bits(feature.state);
  return (regs[feature.reg - 'a'] >> feature.bit & 1) != 0 && (saved_state() & needed) == needed;
}

#elif defined(__aarch64__)

constexpr std::string_view kHostArch = "aarch64";

bool has_feature(const CpuFeature& feature) { return (::getauxval(feature.leaf) >> feature.bit & 1) != 0; }

#else

constexpr std::string_view kHostArch;

bool has_feature(const CpuFeature&) { return false; }

#endif

}  // namespace

std::span<const CpuFeature> cpu_features() { return kFeatures; }

const CpuFeature* find_cpu_feature(std::string_view arch, std::string_view name) {
  for (const CpuFeature& row : kFeatures) {
    if (row.arch == arch && row.name == name) return &row;
  }
  return nullptr;
}

std::string_view host_cpu_arch() { return kHostArch; }

bool host_has_cpu_feature(std::string_view llvm_name) {
  const CpuFeature* row = find_cpu_feature(kHostArch, llvm_name);
  return row != nullptr && has_feature(*row);
}

std::vector<std::string> missing_cpu_features(const std::vector<std::string>& required) {
  std::vector<std::string> missing;
  for (const std::string& name : required) {
    if (!host_has_cpu_feature(name)) missing.push_back(name);
  }
  return missing;
}

}  // namespace tensormill
