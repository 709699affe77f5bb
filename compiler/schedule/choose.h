/// Schedules whose choices come from outside: what a search runs templates with. Thread-safety: pure
/// functions.
#pragma once

#include <vector>

#include "compiler/schedule/knob.h"
#include "compiler/schedule/schedule.h"

namespace tensormill::schedule {

/// A template's schedule with the choices that made it.
struct Tuned {
  Schedule schedule;
  std::vector<Knob> knobs;
};

/// As default_schedule, with every choice of the template made by `choose`. Throws Error(kInvalidRecords)
/// when the choices do not fit together.
Tuned choose_schedule(const te::Program& program, const target::Target& target, const Chooser& choose);

}  // namespace tensormill::schedule
