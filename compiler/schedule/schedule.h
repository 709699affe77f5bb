/// Schedules: how a program is computed, as a list of steps that are values: printed, parsed, hashed and
/// replayed. Applying the list to the program gives a loop nest; nothing but the list decides it. Primitives:
/// split, fuse, reorder, tile, compute_at, compute_inline, cache_read, cache_write, vectorize, unroll,
/// parallel, rfactor, storage_layout (and bind, tensorize for later targets). Thread-safety: values and pure
/// functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/target/target.h"
#include "compiler/te/stmt.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::schedule {

/// One step: "split s2 ax1 16", "vectorize s2 ax1.i". Stages are named s0, s1 … in stages_of order (steps
/// that make stages name them), axes by stage-local names; arguments are names or integers.
struct Step {
  std::string primitive;
  std::vector<std::string> args;
  bool operator==(const Step&) const = default;
};

struct Schedule {
  std::vector<Step> steps;
  bool operator==(const Schedule&) const = default;
};

std::string print(const Schedule& schedule);     ///< one step a line
Schedule parse_schedule(std::string_view text);  ///< throws Error(kInvalidRecords) with the line

/// What the extents and expressions of a program may mention besides axes: the kernel's arguments. They are
/// never negative.
struct Arguments {
  std::vector<te::Var> vars;
  std::vector<te::Expr> conditions;  ///< under which the loops run; nothing is computed elsewhere
};

/// The analytic default for the program on the target, by the first row of templates.def whose structure it
/// has (the last takes any program).
Schedule default_schedule(const te::Program& program, const target::Target& target);

/// Applies the steps and builds the loop nest at te::Level::kLoops: parameters are program.inputs then
/// program.outputs. With arguments, an index that is not shown to be in bounds is clamped (bounded_reads.h).
/// Throws Error(kInvalidRecords) naming the first step that does not apply.
te::Function apply(const te::Program& program, const Schedule& schedule, const std::string& name,
                   const Arguments& arguments = {});

}  // namespace tensormill::schedule
