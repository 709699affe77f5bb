// Runs of plans whose extents the run decides: what is known so far is run, then the next segment is bound.
#include <algorithm>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/other_graph.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/memory/planner.h"

namespace tensormill::exec {

void GraphExecutor::begin_segments() {
  segments_.reset();
  if (bound_plan_->segments == nullptr) return;
  SegmentState state;
  state.plan = std::make_shared<package::BoundPlan>(*bound_plan_);
  const package::Segments& segments = *state.plan->segments;
  state.dims = package::formula_dims(*state.plan->generic, state.plan->dims);
  state.refused = package::RefusedBranches(state.plan->plan);
  state.arenas.resize(segments.count() - 1);
  state.bases = {0};
  state.blocks = {state.plan->memory.blocks};
  for (const int64_t offset : state.plan->memory.offsets) state.is_of_first.push_back(offset >= 0);
  state.is_bound.assign(segments.count(), false);
  state.is_bound[0] = true;
  state.is_placed.assign(segments.count(), false);
  state.own.resize(segments.count());
  state.capacities.assign(state.plan->plan.buffers.size(), -1);
  state.staged.assign(segments.loops().size(), 0);
  bound_plan_ = state.plan;
  segments_ = std::move(state);
}

size_t GraphExecutor::end_of_segment(size_t step_index) const {
  if (!segments_) return plan().steps.size();
  const package::Segments& segments = *bound_plan_->segments;
  return segments.end(segments.of_step(step_index));
}

int64_t GraphExecutor::bytes_without(size_t segment) const {
  int64_t bytes = memory::checked_add(static_cast<int64_t>(arena_.size()),
                                      static_cast<int64_t>(worker_workspace_.size()));
  for (size_t i = 0; segments_ && i < segments_->arenas.size(); ++i) {
    if (i + 1 != segment)
      bytes = memory::checked_add(bytes, static_cast<int64_t>(segments_->arenas[i].size()));
  }
  return bytes;
}

void GraphExecutor::enter_segment(size_t step_index) {
  if (!segments_ || step_index == 0) return;
  const package::Segments& segments = *bound_plan_->segments;
  const size_t segment = segments.of_step(step_index);
  if (segments.begin(segment) != step_index) return;
  const package::GenericPlan& generic = *bound_plan_->generic;
  bool is_same = segments_->is_bound[segment];
  for (size_t run = segments.bound_before(segment - 1); run < segments.bound_before(segment); ++run) {
    const package::RunDim& dim = generic.run_dims[run];
    const auto* numbers = static_cast<const int64_t*>(bound_[static_cast<size_t>(dim.step)].buffers.back());
    int64_t& own = segments_->dims[generic.dims.size() + run];
    is_same = is_same && own == numbers[dim.element];
    own = numbers[dim.element];
  }
  // As in the run or the iteration before, whose numbers so far were these, too.
  if (is_same) return;
  // Those behind it may be made of its numbers, and lie behind it.
  std::fill(segments_->is_bound.begin() + static_cast<std::ptrdiff_t>(segment), segments_->is_bound.end(),
            false);
  const auto origins = [&] {
    const std::vector<std::string>& names = plan().steps[step_index - 1].origins;
    return names.empty() ? std::string("the run") : "node \"" + names.front() + "\"";
  };
  try {
    bind_segment(segment);
  } catch (Error& error) {
    error.add_context("with the numbers of " + origins());
    if (error.code() != ErrorCode::kInvalidTensor) throw;
    if (package_->interprets()) throw OtherGraph(std::string(error.message()));
    throw Error(ErrorCode::kTensorData, error.message());
  }
  segments_->is_bound[segment] = true;
}

std::vector<memory::PlacedBlock> GraphExecutor::taken_before(size_t segment) const {
  const auto begin = static_cast<int64_t>(bound_plan_->segments->begin(segment));
  std::vector<memory::PlacedBlock> taken;
  for (size_t i = 0; i < segment; ++i) {
    for (const memory::PlacedBlock& block : segments_->blocks[i]) {
      if (block.last >= begin) taken.push_back(block);
    }
    const int64_t border = memory::checked_add(segments_->bases[i], arena_of(i).size());
    taken.push_back({border, kTensorAlignment, 0, std::numeric_limits<int64_t>::max()});
  }
  std::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return taken;
}

std::byte* GraphExecutor::place(int64_t offset) const {
  if (!segments_) return arena_.data() + offset;
  const std::vector<int64_t>& bases = segments_->bases;
  const auto behind = std::upper_bound(bases.begin(), bases.end(), offset);
  const auto segment = static_cast<size_t>(behind - bases.begin()) - 1;
  return arena_of(segment).data() + (offset - bases[segment]);
}

bool GraphExecutor::has_place(size_t segment) const {
  const package::ExecPlan& plan = this->plan();
  const package::Segments& segments = *bound_plan_->segments;
  if (!segments_->is_placed[segment]) return false;
  const auto fits = [&](int32_t id) {
    const auto buffer = static_cast<size_t>(id);
    return plan.buffers[buffer].bytes <= segments_->capacities[buffer];
  };
  const std::vector<int32_t>& own = segments_->own[segment];
  if (!std::all_of(own.begin(), own.end(), fits)) return false;
  for (size_t i = 0; i < segments.loops().size(); ++i) {
    const package::Loop& loop = segments.loops()[i];
    if (segments.of_step(loop.end) == segment && staged_bytes(plan, loop) > segments_->staged[i])
      return false;
  }
  return true;
}

std::vector<int64_t> GraphExecutor::wanted_capacities() const {
  constexpr int64_t kSpare = 1024;
  std::vector<int64_t> wanted = segments_->capacities;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const int64_t bytes = plan().buffers[i].bytes;
    // What has outgrown its place will do so in the next iterations.
    if (wanted[i] >= 0 && bytes > wanted[i]) wanted[i] = memory::checked_add(bytes, bytes / 4 + kSpare);
  }
  return wanted;
}

int64_t GraphExecutor::free_places(size_t segment) {
  const auto next_base = [&] {
    const memory::Arena& last = arena_of(segments_->bases.size() - 1);
    return memory::checked_add(segments_->bases.back(), last.size() + kTensorAlignment);
  };
  segments_->bases.resize(std::min(segments_->bases.size(), segment));
  segments_->blocks.resize(segments_->bases.size());
  // What is behind lies behind it.
  std::fill(segments_->is_placed.begin() + static_cast<std::ptrdiff_t>(segment), segments_->is_placed.end(),
            false);
  // Of a loop that had no iteration nothing lies anywhere.
  while (segments_->bases.size() < segment) {
    segments_->bases.push_back(next_base());
    segments_->blocks.emplace_back();
  }
  return next_base();
}

package::MemoryPlan GraphExecutor::plan_segment(size_t segment, int64_t base) const {
  const package::BoundPlan& bound = *segments_->plan;
  const package::Segments& segments = *bound.segments;
  const auto all_bytes = [&](const package::MemoryPlan& memory) {
    const int64_t own = std::max<int64_t>(memory.arena_bytes - base, 0);
    const int64_t workspace = memory::checked_mul(memory.worker_workspace_bytes, max_threads_);
    return memory::checked_add(memory::checked_add(bytes_without(segment), own),
                               memory::checked_add(workspace, growing_->capacity()));
  };
  const std::vector<memory::PlacedBlock> taken = taken_before(segment);
  const std::vector<int64_t> wanted = wanted_capacities();
  package::PlacedSteps steps{segments.begin(segment), segments.end(segment), segments.loops(), taken, wanted};
  package::MemoryPlan memory = package::plan_memory(bound.plan, steps);
  if (all_bytes(memory) > memory_budget_) {
    steps.capacities = {};
    memory = package::plan_memory(bound.plan, steps);
  }
  if (const int64_t bytes = all_bytes(memory); bytes > memory_budget_)
    throw Error(ErrorCode::kMemoryBudget, "the run needs " + std::to_string(bytes) + " bytes, " +
                                              std::to_string(memory_budget_) + " are allowed");
  return memory;
}

void GraphExecutor::take_places(size_t segment, const package::MemoryPlan& memory) {
  package::BoundPlan& bound = *segments_->plan;
  const package::Segments& segments = *bound.segments;
  bound.memory.worker_workspace_bytes =
      std::max(bound.memory.worker_workspace_bytes, memory.worker_workspace_bytes);
  std::vector<int32_t>& own = segments_->own[segment];
  own.clear();
  for (size_t i = 0; i < memory.offsets.size(); ++i) {
    if (memory.offsets[i] >= 0) bound.memory.offsets[i] = memory.offsets[i];
    if (memory.capacities[i] < 0) continue;
    segments_->capacities[i] = memory.capacities[i];
    own.push_back(static_cast<int32_t>(i));
  }
  for (size_t i = segments.begin(segment); i < segments.end(segment); ++i)
    bound.memory.shared_workspace[i] = memory.shared_workspace[i];
  for (size_t i = 0; i < segments.loops().size(); ++i) {
    const package::Loop& loop = segments.loops()[i];
    if (segments.of_step(loop.end) == segment) segments_->staged[i] = staged_bytes(bound.plan, loop);
  }
}

void GraphExecutor::place_segment(size_t segment) {
  const int64_t base = free_places(segment);
  package::MemoryPlan memory = plan_segment(segment, base);
  memory::Arena& arena = segments_->arenas[segment - 1];
  const int64_t own = std::max<int64_t>(memory.arena_bytes - base, 0);
  if (own > arena.size()) arena = memory::Arena(own);
  const int64_t workspace = memory.worker_workspace_bytes * max_threads_;
  if (workspace > static_cast<int64_t>(worker_workspace_.size()))
    worker_workspace_ = memory::Arena(workspace);
  growing_->set_limit(memory_budget_ - bytes_without(0));
  take_places(segment, memory);
  segments_->bases.push_back(base);
  segments_->blocks.push_back(std::move(memory.blocks));
  segments_->is_placed[segment] = true;
}

void GraphExecutor::bind_segment(size_t segment) {
  package::BoundPlan& bound = *segments_->plan;
  const package::Segments& segments = *bound.segments;
  segments.bind(segment, segments_->refused, segments_->dims, bound.plan);
  package::check_loops(bound.plan, segments.loops());
  const bool stays = has_place(segment);
  if (!stays) place_segment(segment);
  for (size_t i = segments.begin(segment); i < segments.end(segment); ++i) {
    // A trim's operands are of the same extents, whatever they are.
    if (!stays || bound_[i].trim) bind(i);
  }
  // Some of them run.
  const auto renew = [&](LoopRunner& running) {
    LoopRunner moved = runner_of(running.loop());
    moved.take_over(running);
    running = std::move(moved);
  };
  if (stays) {
    for (const size_t loop : segments.loops_sized_in(segment)) renew(loops_[loop]);
  } else {
    for (LoopRunner& running : loops_) renew(running);
  }
}

}  // namespace tensormill::exec
