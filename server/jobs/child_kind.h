/// The kinds of children, and what each may ask of the kernel. Thread-safety: values.
#pragma once

#include <string_view>

namespace tensormill::jobs {

/// Bits: what a kind needs beyond computing on its descriptors (child_kinds.def).
enum ChildNeed : unsigned {
  kMakesFiles = 1,  ///< makes and opens files in its folder
  kLinks = 2,       ///< opens its own descriptors by name, makes memory files and pipes
  kRunsCode = 4,    ///< makes memory executable
  kResizes = 8      ///< changes the length of files that it was given
};

enum class ChildKind {
#define TM_CHILD_KIND(enumerator, name, needs, meaning) enumerator,
#include "server/jobs/child_kinds.def"
#undef TM_CHILD_KIND
};

inline constexpr ChildKind kChildKinds[] = {
#define TM_CHILD_KIND(enumerator, name, needs, meaning) ChildKind::enumerator,
#include "server/jobs/child_kinds.def"
#undef TM_CHILD_KIND
};

constexpr std::string_view child_kind_name(ChildKind kind) {
  constexpr std::string_view kNames[] = {
#define TM_CHILD_KIND(enumerator, name, needs, meaning) name,
#include "server/jobs/child_kinds.def"
#undef TM_CHILD_KIND
  };
  return kNames[static_cast<int>(kind)];
}

/// ChildNeed bits.
constexpr unsigned needs_of(ChildKind kind) {
  constexpr unsigned kNeeds[] = {
#define TM_CHILD_KIND(enumerator, name, needs, meaning) needs,
#include "server/jobs/child_kinds.def"
#undef TM_CHILD_KIND
  };
  return kNeeds[static_cast<int>(kind)];
}

}  // namespace tensormill::jobs
