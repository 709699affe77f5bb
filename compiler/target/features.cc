#include "compiler/target/features.h"

#include "runtime/base/error.h"

namespace tensormill::target {

const std::vector<CpuRow>& all_cpus() {
  static const std::vector<CpuRow> rows = {
#define TM_CPU(name, arch, vendor, base, extra, l1d, l2, product_bits, streamed) \
  {name, arch, vendor, base, extra, l1d, l2, product_bits, streamed},
#include "config/cpus.def"
#undef TM_CPU
  };
  return rows;
}

const CpuRow* find_cpu(std::string_view arch, std::string_view name) {
  for (const CpuRow& row : all_cpus()) {
    if (row.arch == arch && row.name == name) return &row;
  }
  return nullptr;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  size_t begin = 0;
  while ((begin = text.find_first_not_of(" \t\n", begin)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(" \t\n", begin), text.size());
    result.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

void enable(FeatureSet& set, std::string_view arch, std::string_view name) {
  const CpuFeature* row = find_cpu_feature(arch, name);
  TM_CHECK(row != nullptr, "feature " + std::string(name));
  if (!set.insert(std::string(name)).second) return;
  for (std::string_view implied : words(row->implies)) enable(set, arch, implied);
}

void disable(FeatureSet& set, std::string_view arch, std::string_view name) {
  set.erase(std::string(name));
  for (const CpuFeature& row : cpu_features()) {
    if (row.arch != arch || set.find(row.name) == set.end()) continue;
    for (std::string_view implied : words(row.implies)) {
      if (implied == name) {
        disable(set, arch, row.name);
        break;
      }
    }
  }
}

FeatureSet features_of(const CpuRow& cpu) {
  FeatureSet set;
  if (!cpu.base.empty()) {
    const CpuRow* base = find_cpu(cpu.arch, cpu.base);
    TM_CHECK(base != nullptr && base != &cpu, "base of cpu " + std::string(cpu.name));
    set = features_of(*base);
  }
  for (std::string_view name : words(cpu.extra)) enable(set, cpu.arch, name);
  return set;
}

FeatureSet enabled_features(const Target& target) {
  const std::string arch = arch_of(target.triple);
  const CpuRow* cpu = find_cpu(arch, target.cpu);
  TM_CHECK(cpu != nullptr, "cpu " + target.cpu);
  FeatureSet set = features_of(*cpu);
  for (const std::string& feature : target.features) {
    if (feature[0] == '+') {
      set.insert(feature.substr(1));
    } else {
      set.erase(feature.substr(1));
    }
  }
  return set;
}

void derive_vector_facts(std::string_view arch, const FeatureSet& set, CpuFacts& facts) {
  const auto has = [&](std::string_view name) { return set.find(name) != set.end(); };
  if (arch == "aarch64") {
    facts.vector_bits = 128;
    facts.vector_registers = 32;
    facts.fma = true;
    facts.byte_lookup = true;
    return;
  }
  // 512-bit code is worth it only with the byte, word and short-vector forms that tails and masks need.
  const bool wide = has("avx512bw") && has("avx512dq") && has("avx512vl");
  facts.vector_bits = wide ? 512 : has("avx2") ? 256 : 128;
  facts.vector_registers = wide ? 32 : 16;
  facts.fma = has("fma");
  facts.scaling = wide;
  facts.byte_lookup = wide && has("avx512vbmi");
  facts.dot4 = wide ? has("avx512vnni") : has("avxvnni");
}

void derive_rates(const CpuRow& cpu, CpuFacts& facts) {
  facts.products_per_cycle = facts.vector_bits > cpu.product_bits ? 1 : 2;
  facts.streamed_bytes = cpu.streamed_bytes;
}

std::string arch_of(std::string_view triple) { return std::string(triple.substr(0, triple.find('-'))); }

}  // namespace tensormill::target
