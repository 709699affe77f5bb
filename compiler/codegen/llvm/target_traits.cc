#include "compiler/codegen/llvm/target_traits.h"

#include "compiler/target/features.h"

namespace tensormill::codegen {

TargetTraits traits_of(const target::Target& target) {
  const std::string arch = target::arch_of(target.triple);
  const target::FeatureSet set = target::enabled_features(target);
  const auto has = [&](std::string_view name) { return set.find(name) != set.end(); };
  TargetTraits traits;
  traits.cpu = target.cpu;
  traits.triple = target.triple;
  traits.vector_bits = target.facts.vector_bits;
  const bool arm = arch == "aarch64";
  traits.fma = arm || has("fma");
  traits.rounding = arm || has("sse4.1");
  traits.half_convert = arm || has("f16c");
  traits.native_min_max = arm;
  traits.range = has("avx512dq");
  traits.gather = has("avx512f");
  traits.scaling = has("avx512f") && has("avx512vl");
  traits.lookup_512 = has("avx512vbmi");
  traits.lookup_128 = arm;
  traits.dot4_512 = has("avx512vnni");
  traits.dot4_256 = has("avxvnni") || (has("avx512vnni") && has("avx512vl"));
  // LLVM clears what implies a feature that is switched off, so all "-" stand before all "+".
  for (const char sign : {'-', '+'}) {
    for (const CpuFeature& row : cpu_features()) {
      if (row.arch != arch || has(row.name) != (sign == '+')) continue;
      if (!traits.features.empty()) traits.features += ',';
      traits.features += sign + std::string(row.name);
    }
  }
  if (arch == "x86_64") traits.features += has("avx512f") ? ",+evex512" : ",-evex512";
  return traits;
}

}  // namespace tensormill::codegen
