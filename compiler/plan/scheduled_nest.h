/// Nests whose loops are made by a schedule (compiler/schedule), of steps that work on extents which are
/// arguments: those that compute each element by itself. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "compiler/plan/generic_tiling.h"
#include "compiler/schedule/choose.h"

namespace tensormill::plan {

bool is_scheduled(const Nest& nest);
te::Program program_of(const Nest& nest);
/// The default schedule of the nest with each choice made by `choose`.
schedule::Tuned choose_steps(const Nest& nest, const LoopFacts& facts, const schedule::Chooser& choose);
/// Where axes of extents that are arguments end within what the steps compute together.
std::vector<Tail> tails_of(const Nest& nest, const schedule::Schedule& steps);
/// As build_generic_loops of facts, whose default schedule has these steps. Throws Error(kInvalidRecords)
/// naming the first step that does not apply.
te::Function build_generic_loops(const Nest& nest, const TermVars& vars, const schedule::Schedule& steps,
                                 const std::vector<EmptyCase>& empties = {});

}  // namespace tensormill::plan
