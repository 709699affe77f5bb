#include "runtime/package/cpu_features.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace tensormill::package {

namespace {

#if defined(__x86_64__)

// Bits of XCR0.
constexpr uint64_t kAvx = 0x6;
constexpr uint64_t kAvx512 = 0xe6;
constexpr uint64_t kAmx = 0x60000;

struct X86Feature {
  std::string_view name;
  uint32_t leaf;
  uint32_t subleaf;
  int reg;
  int bit;
  uint64_t state;
};

constexpr X86Feature kFeatures[] = {
#define TM_X86_FEATURE(name, leaf, subleaf, reg, bit, state) {name, leaf, subleaf, reg, bit, state},
#include "runtime/package/cpu_features.def"
#undef TM_X86_FEATURE
};

uint64_t saved_state() {
  uint32_t regs[4] = {};
  constexpr uint32_t kOsXsave = 1u << 27;
  if (__get_cpuid(1, &regs[0], &regs[1], &regs[2], &regs[3]) == 0 || (regs[2] & kOsXsave) == 0) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

bool has_feature(std::string_view name) {
  for (const X86Feature& feature : kFeatures) {
    if (feature.name != name) continue;
    uint32_t regs[4] = {};
    if (__get_cpuid_count(feature.leaf, feature.subleaf, &regs[0], &regs[1], &regs[2], &regs[3]) == 0)
      return false;
    return (regs[feature.reg] >> feature.bit & 1) != 0 && (saved_state() & feature.state) == feature.state;
  }
  return false;
}

#elif defined(__aarch64__)

struct ArmFeature {
  std::string_view name;
  uint64_t hwcap;
};

// Bits of AT_HWCAP, as the kernel's asm/hwcap.h has them.
constexpr ArmFeature kFeatures[] = {{"fp-armv8", 1 << 0}, {"neon", 1 << 1},     {"aes", 1 << 3},
                                    {"sha2", 1 << 6},     {"crc", 1 << 7},      {"lse", 1 << 8},
                                    {"fullfp16", 1 << 9}, {"rdm", 1 << 12},     {"dotprod", 1 << 20},
                                    {"sve", 1 << 22},     {"fp16fml", 1 << 23}, {"v8a", 1 << 0}};

bool has_feature(std::string_view name) {
  for (const ArmFeature& feature : kFeatures) {
    if (feature.name == name) return (::getauxval(AT_HWCAP) & feature.hwcap) != 0;
  }
  return false;
}

#else

bool has_feature(std::string_view) { return false; }

#endif

}  // namespace

bool host_has_cpu_feature(std::string_view llvm_name) { return has_feature(llvm_name); }

std::vector<std::string> missing_cpu_features(const std::vector<std::string>& required) {
  std::vector<std::string> missing;
  for (const std::string& name : required) {
    if (!host_has_cpu_feature(name)) missing.push_back(name);
  }
  return missing;
}

}  // namespace tensormill::package
