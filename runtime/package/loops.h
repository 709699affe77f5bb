/// Loops of a plan: a host step "loop_begin", the steps of the body, and a host step "loop_end" with the same
/// number. The executor runs both itself and goes back from the end to the first step of the body.
///
///   loop_begin(max_trips?, condition?, initial..., scanned...) -> number of the iteration, carried...,
///   rows... loop_end(number of the iteration, condition?, next..., parts...) -> final..., stacked..., trips
///
/// Attributes: loop (the number, one for each loop of a plan), carried (how many values one iteration hands
/// to the next), max_trips and condition (0 or 1: whether the operand is there). max_trips
/// (i64 [1]) and the extent of the scanned values' first axis, of which each iteration gets a row, bound the
/// trips; a condition (bool [1]) that is false ends the loop before the next one. Stacked values get one part
/// in each iteration, and zeros behind them; trips (i64 [1]) counts the iterations. Without any the final
/// values are the initial ones. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/package/exec_plan.h"

namespace tensormill::package {

/// Loops inside each other; past it a plan is refused.
inline constexpr size_t kMaxLoopDepth = 16;

/// Buffers, but for the steps. Lists that correspond have the same length.
struct Loop {
  size_t begin = 0, end = 0;     ///< steps
  int32_t max_trips = -1;        ///< or -1
  int32_t first_condition = -1;  ///< of loop_begin, or -1
  int32_t next_condition = -1;   ///< of loop_end, or -1
  int32_t iteration = -1;
  std::vector<int32_t> initial, carried, next, final;
  std::vector<int32_t> scanned, rows;
  std::vector<int32_t> parts, stacked;
  int32_t trips = -1;
  /// The loop around it by its place in the list, or -1.
  int32_t outer = -1;
};

bool begins_loop(const Step& step);
bool ends_loop(const Step& step);

/// In the order of their first steps. Buffer ids of the plan's steps must be in range. Throws
/// Error(kInvalidPackage) with a JSON pointer unless the steps stand in pairs, inside each other or apart,
/// and their operands have the types and sizes that copying them needs.
std::vector<Loop> loops_of(const ExecPlan& plan);
/// What loops_of checks of types and sizes, where the plan's extents have been bound since.
void check_loops(const ExecPlan& plan, std::span<const Loop> loops);

/// Whether loop.next[index] lies in what an iteration hands to the next: it is copied aside before any of
/// that is overwritten.
bool is_staged(const ExecPlan& plan, const Loop& loop, size_t index);
/// Of all that is copied aside.
int64_t staged_bytes(const ExecPlan& plan, const Loop& loop);

/// Whether what a run computes decides how often a loop goes round: what shares a run then shares its trips.
bool has_loops_decided_by_data(const ExecPlan& plan);

}  // namespace tensormill::package
