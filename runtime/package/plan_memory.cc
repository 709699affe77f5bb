#include "runtime/package/plan_memory.h"

#include <algorithm>
#include <map>

#include "runtime/base/error.h"
#include "runtime/memory/planner.h"
#include "runtime/package/loops.h"
#include "runtime/package/segments.h"

namespace tensormill::package {

namespace {

using memory::BlockRequest;
using memory::ReuseHint;

/// First and last step that touch a root buffer.
struct Life {
  int64_t first = -1;
  int64_t last = -1;
  void touch(int64_t step) {
    if (first < 0) first = step;
    last = std::max(last, step);
  }
};

class MemoryPlanner {
public:
  MemoryPlanner(const ExecPlan& plan, const PlacedSteps& steps)
      : plan_(plan),
        begin_(steps.begin),
        end_(steps.end),
        loops_(steps.loops),
        capacities_(steps.capacities),
        lives_(plan.buffers.size()),
        block_(plan.buffers.size(), -1) {}

  MemoryPlan run(std::span<const memory::PlacedBlock> taken) {
    find_lives();
    for (const Loop& loop : loops_) share_carried(loop);
    request_buffers();
    find_hints();
    MemoryPlan result;
    std::vector<int32_t> workspace_block(plan_.steps.size(), -1);
    for (size_t i = begin_; i < end_; ++i) {
      const Step& step = plan_.steps[i];
      const int64_t when = static_cast<int64_t>(i);
      if (step.shared_workspace_bytes > 0) {
        workspace_block[i] = add_block({step.shared_workspace_bytes, when, when});
      }
      result.worker_workspace_bytes = std::max(result.worker_workspace_bytes, step.worker_workspace_bytes);
    }
    for (const Loop& loop : loops_) {
      if (loop.end < begin_ || loop.end >= end_) continue;
      const auto when = static_cast<int64_t>(loop.end);
      const int64_t bytes = staged_bytes(plan_, loop);
      if (bytes > 0) workspace_block[loop.end] = add_block({bytes, when, when});
    }
    if (result.worker_workspace_bytes > 0) {
      // Padding keeps a vector load at the end of one worker's slice off the next one's cache line.
      result.worker_workspace_bytes = memory::padded_size(result.worker_workspace_bytes);
    }
    memory::BlockPlan blocks = memory::plan_blocks(requests_, hints_, taken);
    result.arena_bytes = blocks.total_bytes;
    result.live_peak_bytes = blocks.live_peak_bytes;
    const auto offset_of = [&](int32_t block) {
      return block < 0 ? int64_t{-1} : blocks.offsets[static_cast<size_t>(block)];
    };
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const int64_t root =
          offset_of(block_[static_cast<size_t>(root_buffer(plan_, static_cast<int32_t>(i)))]);
      const bool is_view = plan_.buffers[i].kind == BufferKind::kView;
      result.offsets.push_back(root >= 0 && is_view ? root + plan_.buffers[i].view_offset : root);
    }
    for (size_t i = 0; i < plan_.buffers.size(); ++i)
      result.capacities.push_back(block_[i] < 0 ? -1 : requests_[static_cast<size_t>(block_[i])].bytes);
    for (int32_t block : workspace_block) result.shared_workspace.push_back(offset_of(block));
    result.blocks = std::move(blocks.placed);
    return result;
  }

private:
  Life& life(int32_t buffer) { return lives_[static_cast<size_t>(root_buffer(plan_, buffer))]; }

  void find_lives() {
    const int64_t end = static_cast<int64_t>(plan_.steps.size());
    for (int64_t i = 0; i < end; ++i) {
      const Step& step = plan_.steps[static_cast<size_t>(i)];
      for (int32_t buffer : step.args) life(buffer).touch(i);
      // The executor reads what extents are bound to, behind the last step of the segment.
      if (binds_extents(step)) life(step.args.back()).touch(end);
    }
    for (const Port& port : plan_.outputs) life(port.buffer).touch(end);
    for (const Loop& loop : loops_) keep_through(loop);
    // The caller writes inputs before the first step and may run again without writing them.
    for (const Port& port : plan_.inputs) life(port.buffer) = {0, end};
  }

  /// What an iteration reads that another one, or a step before the loop, has written stays to the end of the
  /// loop; what gets a part in each iteration is there from its begin.
  void keep_through(const Loop& loop) {
    const auto begin = static_cast<int64_t>(loop.begin), end = static_cast<int64_t>(loop.end);
    for (size_t i = loop.begin; i <= loop.end; ++i) {
      for (const int32_t buffer : plan_.steps[i].args) {
        if (life(buffer).first <= begin) life(buffer).touch(end);
      }
    }
    for (const int32_t buffer : loop.stacked) life(buffer).first = std::min(life(buffer).first, begin);
    // The end of a loop that binds extents is in a segment that has another place in each iteration, or none
    // where there is no iteration.
    const auto step = [&](size_t index) { return plan_.steps.begin() + static_cast<std::ptrdiff_t>(index); };
    if (std::none_of(step(loop.begin), step(loop.end), &binds_extents)) return;
    for (const int32_t buffer : loop.final) life(buffer).first = std::min(life(buffer).first, begin);
    life(loop.trips).first = std::min(life(loop.trips).first, begin);
  }

  /// What an iteration hands on is made in the place of what it was handed, where nothing reads that after.
  void share_carried(const Loop& loop) {
    for (size_t i = 0; i < loop.carried.size(); ++i) {
      const int32_t carried = loop.carried[i], next = loop.next[i];
      const bool is_once = std::count(loop.next.begin(), loop.next.end(), next) == 1;
      if (!is_once || !is_whole_temp(carried) || !is_whole_temp(next) || is_shared(carried) ||
          is_shared(next))
        continue;
      if (life(carried).first != static_cast<int64_t>(loop.begin) ||
          life(carried).last != static_cast<int64_t>(loop.end) ||
          life(next).last != static_cast<int64_t>(loop.end) || life(next).first <= life(carried).first)
        continue;
      if (may_replace(loop, carried, next)) same_block_.emplace(next, carried);
    }
  }

  bool is_shared(int32_t buffer) const {
    return std::any_of(same_block_.begin(), same_block_.end(),
                       [&](const auto& shared) { return shared.first == buffer || shared.second == buffer; });
  }

  /// Whether the step that makes `next` is the last of the body to read `carried`, if it does: in place then.
  bool may_replace(const Loop& loop, int32_t carried, int32_t next) const {
    const auto made = static_cast<size_t>(lives_[static_cast<size_t>(next)].first);
    const Step& maker = plan_.steps[made];
    // A body inside of this one would be gone through again.
    for (const Loop& other : loops_) {
      if (other.begin > loop.begin && other.begin <= made && made <= other.end) return false;
    }
    if (made >= loop.end || !writes(maker, next)) return false;
    for (size_t i = loop.begin + 1; i <= loop.end; ++i) {
      const Step& step = plan_.steps[i];
      const auto reads = [&](int32_t id) { return root_buffer(plan_, id) == carried; };
      if (i != made && i > made && std::any_of(step.args.begin(), step.args.end(), reads)) return false;
      if (i < made && writes(step, carried)) return false;
    }
    return !used_otherwise(maker, carried, position_in_place(maker, carried, next));
  }

  /// Whether the step writes the buffer, whole, and does not read it.
  bool writes(const Step& step, int32_t buffer) const {
    size_t written = 0, all = 0;
    for (const int32_t position : step.outputs) written += step.args[static_cast<size_t>(position)] == buffer;
    for (const int32_t id : step.args) all += root_buffer(plan_, id) == buffer;
    return written == 1 && all == 1;
  }

  /// Where the step reads what it may overwrite with `target`; -1 where it does not.
  static int32_t position_in_place(const Step& step, int32_t source, int32_t target) {
    for (const InPlace& pair : step.in_place) {
      if (step.args[static_cast<size_t>(pair.output)] == target &&
          step.args[static_cast<size_t>(pair.input)] == source)
        return pair.input;
    }
    return -1;
  }

  int32_t add_block(const BlockRequest& request) {
    requests_.push_back(request);
    return static_cast<int32_t>(requests_.size()) - 1;
  }

  void request_buffers() {
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const Buffer& buffer = plan_.buffers[i];
      if (buffer.kind == BufferKind::kView || buffer.kind == BufferKind::kConstant) continue;
      if (lives_[i].first < 0 || same_block_.count(static_cast<int32_t>(i)) != 0 || !is_own(lives_[i]))
        continue;
      const int64_t capacity = capacities_.empty() ? 0 : capacities_[i];
      block_[i] = add_block({std::max(buffer.bytes, capacity), lives_[i].first, lives_[i].last});
    }
    for (const auto& [next, carried] : same_block_)
      block_[static_cast<size_t>(next)] = block_[static_cast<size_t>(carried)];
  }

  /// An output that no step touches, as an input that is handed on, is there from the first step on.
  bool is_own(const Life& life) const {
    const size_t first =
        life.first < static_cast<int64_t>(plan_.steps.size()) ? static_cast<size_t>(life.first) : 0;
    return (begin_ <= first && first < end_) || (begin_ == 0 && first == 0);
  }

  /// A hint holds for whole root buffers only: a view's bytes belong to others too.
  void find_hints() {
    for (const Step& step : plan_.steps) {
      for (const InPlace& pair : step.in_place) {
        const int32_t target = step.args[static_cast<size_t>(pair.output)];
        const int32_t source = step.args[static_cast<size_t>(pair.input)];
        if (!is_whole_temp(target) || !is_whole_temp(source)) continue;
        if (block_[static_cast<size_t>(target)] < 0 || block_[static_cast<size_t>(source)] < 0) continue;
        if (used_otherwise(step, source, pair.input)) continue;
        hints_.push_back({block_[static_cast<size_t>(target)], block_[static_cast<size_t>(source)]});
      }
    }
  }

  bool is_whole_temp(int32_t buffer) const {
    const BufferKind kind = plan_.buffers[static_cast<size_t>(buffer)].kind;
    return kind == BufferKind::kTemp || kind == BufferKind::kOutput;
  }

  /// The step also reads the source through another argument, which is not declared as an alias.
  bool used_otherwise(const Step& step, int32_t source, int32_t position) const {
    for (size_t i = 0; i < step.args.size(); ++i) {
      if (static_cast<int32_t>(i) != position && root_buffer(plan_, step.args[i]) == source) return true;
    }
    return false;
  }

  const ExecPlan& plan_;
  const size_t begin_, end_;  ///< the steps that are looked at
  const std::span<const Loop> loops_;
  const std::span<const int64_t> capacities_;
  std::vector<Life> lives_;
  std::vector<int32_t> block_;
  std::map<int32_t, int32_t> same_block_;  ///< what a loop hands on -> what it was handed
  std::vector<BlockRequest> requests_;
  std::vector<ReuseHint> hints_;
};

}  // namespace

MemoryPlan plan_memory(const ExecPlan& plan) {
  const std::vector<Loop> loops = loops_of(plan);
  return plan_memory(plan, {0, plan.steps.size(), loops});
}

MemoryPlan plan_memory(const ExecPlan& plan, const PlacedSteps& steps) {
  return MemoryPlanner(plan, steps).run(steps.taken);
}

}  // namespace tensormill::package
