/// The tables behind targets: CPU features (runtime/base/cpu_features.def) and named CPUs (config/cpus.def),
/// and what follows from a set of features. Sets are sorted by name, so that whatever is printed from them is
/// canonical. Thread-safety: pure functions over constant tables.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/target/target.h"
#include "runtime/base/cpu_features.h"

namespace tensormill::target {

using FeatureSet = std::set<std::string, std::less<>>;

struct CpuRow {
  std::string_view name;
  std::string_view arch;
  std::string_view vendor;
  std::string_view base;
  std::string_view extra;
  int l1d_kib;
  int l2_kib;
  int product_bits;
  int streamed_bytes;
};

const std::vector<CpuRow>& all_cpus();
/// The row, or null.
const CpuRow* find_cpu(std::string_view arch, std::string_view name);

/// All features of the CPU: its base's, its own and the implied ones.
FeatureSet features_of(const CpuRow& cpu);
/// Adds the feature and what it implies.
void enable(FeatureSet& set, std::string_view arch, std::string_view name);
/// Removes the feature and all that imply it.
void disable(FeatureSet& set, std::string_view arch, std::string_view name);
/// The tracked features that are on for the target.
FeatureSet enabled_features(const Target& target);

/// Width, registers and fma that follow from the features; the CPU's own facts, caches and cores are left as
/// they are.
void derive_vector_facts(std::string_view arch, const FeatureSet& set, CpuFacts& facts);
/// What a core of the CPU does in a cycle, with vectors of the width in `facts`.
void derive_rates(const CpuRow& cpu, CpuFacts& facts);
/// "x86_64" or "aarch64" of a triple.
std::string arch_of(std::string_view triple);
/// Words of `text` separated by blanks.
std::vector<std::string_view> words(std::string_view text);

}  // namespace tensormill::target
