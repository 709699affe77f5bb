/// The functions behind primitives.def. Each throws Error(kInvalidRecords) when it does not apply.
#pragma once

#include <string>
#include <vector>

#include "compiler/schedule/state.h"

namespace tensormill::schedule {

#define TM_PRIMITIVE(name, function, fewest, most, form) \
  void function(State& state, const std::vector<std::string>& args);
#include "compiler/schedule/primitives.def"
#undef TM_PRIMITIVE

/// The axis `name` of the stage, which must be a leaf; returns its index into axes.
int leaf_named(const Stage& stage, const std::string& name);
/// Whether it reduces select(condition, x, neutral element) of one value: of what guard makes a condition.
bool has_conditions(const Stage& stage);
/// A positive integer argument.
int64_t positive(const std::string& text);

}  // namespace tensormill::schedule
