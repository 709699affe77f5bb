/// Plans whose extents are not all known when shapes bind. The steps are in segments: each ends with the
/// steps bind_extents that bind the run's dims (RunDim) of which extents of the next one are made. An
/// executor runs a segment, reads these numbers, and binds the next segment to them. Nothing is run twice,
/// and nothing is larger than its extents.
///
/// A loop may bind extents in its body: what is made of these is known in the body alone, is bound anew in
/// each iteration, and keeps nothing from one to the next. Such a loop's end is a segment's end as well.
/// Thread-safety: const members from many threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/package/exec_plan.h"
#include "runtime/package/loops.h"
#include "runtime/package/plan_set.h"

namespace tensormill::package {

/// The name of the host step, and of the compiler's operator.
inline constexpr const char* kBindStep = "bind_extents";

bool binds_extents(const Step& step);

class RefusedBranches;

class Segments {
public:
  /// The plan outlives it. Throws Error(kInvalidPackage), at the pointer, where a dim is bound by no such
  /// step, a step binds nothing, or something is named where it is not bound.
  Segments(const GenericPlan& generic, const std::string& pointer);

  size_t count() const { return ends_.size(); }
  size_t begin(size_t segment) const { return segment == 0 ? 0 : ends_[segment - 1]; }
  size_t end(size_t segment) const { return ends_[segment]; }
  /// Which the step is in.
  size_t of_step(size_t step) const;
  /// In which the hole's value is known.
  size_t of_hole(const PlanHole& hole) const { return of_formula(hole.value); }
  /// Of the plan, as loops_of has them.
  std::span<const Loop> loops() const { return loops_; }
  /// Those of which the segment's numbers say how large operands are, by their places in loops().
  std::span<const size_t> loops_sized_in(size_t segment) const { return parts_[segment].loops; }
  /// How many of the run's dims stand before the segment.
  size_t bound_before(size_t segment) const { return bound_[segment]; }

  /// Free dims, the run's, and the derived ones; what is not bound yet is 0.
  std::vector<int64_t> dims_of(std::span<const int64_t> free_dims) const;
  /// Binds the segment's extents, where `dims` (dims_of) have the run's dims of the segments before it: sets
  /// the derived ones that follow, and fills `plan`, whose refused branches are `refused`. Throws
  /// Error(kInvalidTensor) saying which guard does not hold, or that what a kernel reads would have no
  /// elements; Error(kMemoryBudget) for extents past the limits.
  void bind(size_t segment, const RefusedBranches& refused, std::vector<int64_t>& dims, ExecPlan& plan) const;
  /// The derived ones alone.
  void derive(size_t segment, std::vector<int64_t>& dims) const;

private:
  size_t of_dim(int32_t dim) const { return of_dim_[static_cast<size_t>(dim)]; }
  /// Whether what is known in segment `known` is known in `segment`, which is no earlier one: it is not
  /// behind the loop whose body `known` is in.
  bool is_known_in(size_t known, size_t segment) const;
  /// The later of two segments. Throws Error(kInvalidPackage) where the other is not known there.
  size_t later(size_t one, size_t other) const;
  size_t of_sides(const PlanGuard& guard) const;
  size_t of_formula(const DimFormula& formula) const;
  size_t of_extent(const tensormill::Extent& extent) const;
  void find_ends(const std::string& pointer);
  void find_segments();
  void check_steps(const std::string& pointer) const;

  void check_numbers(size_t segment, const std::vector<int64_t>& dims) const;
  void clear_later(ExecPlan& plan) const;
  struct Parts;
  void fill_buffers(const Parts& parts, const std::vector<int64_t>& dims, const RefusedBranches& refused,
                    ExecPlan& plan) const;

  const GenericPlan& generic_;
  const std::string pointer_;
  const std::vector<Loop> loops_;
  std::vector<size_t> ends_, bound_;
  /// Of the segments in bodies of loops that bind extents: the end of the innermost such loop's steps, by
  /// segment; else that of all steps.
  std::vector<size_t> until_;
  std::vector<size_t> of_dim_;     ///< of formulas
  std::vector<size_t> of_buffer_;  ///< in which its extents are known
  std::vector<bool> is_whole_;     ///< by buffer: whole_views
  /// By segment: indices into the plan's lists.
  struct Parts {
    std::vector<size_t> derived, buffer_holes, step_holes, guards, buffers, loops;
  };
  std::vector<Parts> parts_;
};

/// What a generic plan's run dims say: nothing where it has none. Throws as Segments does.
void check_run_dims(const GenericPlan& generic, std::span<const std::string> free_dims,
                    const std::string& pointer);

/// What formulas of the plan are over: the free dims, the run's, which are 0, and those derived ones that
/// follow from the free dims, the others 0.
std::vector<int64_t> formula_dims(const GenericPlan& generic, std::span<const int64_t> free_dims);

/// Parts of instantiate() that concern some steps alone.
void check_empty(const GenericPlan& generic, const ExecPlan& plan, size_t begin, size_t end);
int64_t no_less(int64_t extent, int64_t least);

}  // namespace tensormill::package
