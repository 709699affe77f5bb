/// What a regular expression says, as a tree. Thread-safety: values.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/host_ops/pattern.h"

namespace tensormill::host_ops {

struct PatternNode {
  enum class Kind : uint8_t { kAll, kOne, kSet, kPlace, kRepeat };
  Kind kind = Kind::kAll;
  std::vector<PatternNode> parts;  ///< kAll: one after the other; kOne: any of them; kRepeat: one
  Pattern::Set set;
  Pattern::Place place = Pattern::Place::kTextStart;
  int least = 0, most = 0;  ///< kRepeat; most < 0: without end
};

/// Throws Error(kInvalidModel).
PatternNode parse_pattern(std::string_view pattern);

}  // namespace tensormill::host_ops
