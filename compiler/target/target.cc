#include "compiler/target/target.h"

#include <algorithm>

#include "compiler/target/features.h"
#include "runtime/base/error.h"

namespace tensormill::target {

std::string Target::canonical() const {
  std::string text = kind + " -mcpu=" + cpu;
  for (size_t i = 0; i < features.size(); ++i) text += (i == 0 ? " -mattr=" : ",") + features[i];
  text += " -mtriple=" + triple;
  text += " -num-cores=" + std::to_string(facts.num_cores);
  text += " -vector-width=" + std::to_string(facts.vector_bits);
  text += " -l1d-bytes=" + std::to_string(facts.l1d_bytes);
  text += " -l2-bytes=" + std::to_string(facts.l2_bytes);
  return text;
}

std::vector<std::string> Target::required_features() const {
  const FeatureSet set = enabled_features(*this);
  return {set.begin(), set.end()};
}

bool Target::is_x86() const { return arch_of(triple) == "x86_64"; }

std::vector<std::string> known_cpus() {
  std::vector<std::string> names;
  for (const CpuRow& row : all_cpus()) {
    if (std::find(names.begin(), names.end(), row.name) == names.end()) names.emplace_back(row.name);
  }
  return names;
}

}  // namespace tensormill::target
