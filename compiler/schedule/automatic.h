/// The automatic scheduler: schedules for any program, without a template of its structure. A sketch is made
/// from the tensor expressions alone: which stages are inlined, which are computed inside of their reader's
/// tiles (and in registers where their results are a tile), which reductions accumulate in a copy of their
/// own (cache write) or in partial results in lanes (rfactor), and two levels of tiles. Every such decision
/// and every tile is a knob, so that what searches templates searches sketches, and records are of one kind.
/// After Zheng et al., "Ansor" (OSDI 2020), sections 4.1 and 4.2. Thread-safety: pure functions.
#pragma once

#include "compiler/schedule/choose.h"

namespace tensormill::schedule {

/// Throws Error(kInvalidRecords) when the choices do not fit together, as choose_schedule does; some that fit
/// are found only by building the loops.
Tuned sketch_schedule(const te::Program& program, const target::Target& target, const Chooser& choose);

/// choose_schedule with one more knob, "sketch", that is chosen first: 0 takes the program's template, 1
/// sketch_schedule. The template's own choice is 0.
Tuned choose_schedule_or_sketch(const te::Program& program, const target::Target& target,
                                const Chooser& choose);

}  // namespace tensormill::schedule
