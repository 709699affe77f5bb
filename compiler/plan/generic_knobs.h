/// The loops of a kernel of free extents by choices that come from outside, written down as the steps of a
/// schedule (scheduled_nest.h), or where a rule makes the loops as "choose KNOB VALUE": what no step names is
/// as the rule has it then (generic_tiling.h). Thread-safety: pure functions.
#pragma once

#include <vector>

#include "compiler/plan/generic_tiling.h"
#include "compiler/schedule/choose.h"

namespace tensormill::plan {

/// What the loops of a kernel are made of, apart from how they are arranged.
struct GenericSource {
  Nest nest;
  TermVars vars;
  LoopFacts facts;
  std::vector<EmptyCase> empties;
};

/// The knobs of the kernel's loops as `choose` has them, and the steps that say so.
schedule::Tuned choose_loops(const GenericSource& source, const schedule::Chooser& choose);

/// The loops that the steps say, and where they do something else than elsewhere.
struct GenericLoops {
  te::Function function;
  std::vector<Tail> tails;
};
/// No step: as by the rule. Throws Error(kInvalidRecords) naming the first step that does not apply: one that
/// is no choice, of a knob that this kernel does not have, or of a value that the knob does not.
GenericLoops loops_by(const GenericSource& source, const schedule::Schedule& steps);

std::vector<Tail> tails_by_rule(const GenericSource& source);

}  // namespace tensormill::plan
