// Runs of packages with rooms: again with more of them where a run needs more.
#include <algorithm>
#include <cstring>

#include "runtime/base/no_room.h"
#include "runtime/base/other_graph.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/exec/rooms_of_run.h"

namespace tensormill::exec {

void GraphExecutor::change_plan_of_run(const std::function<void()>& change) {
  std::map<size_t, std::byte*> lent;
  for (size_t i = 0; i < inputs().size(); ++i) {
    if (const auto found = lent_.find(inputs()[i].buffer); found != lent_.end())
      lent.emplace(i, found->second);
  }
  change();
  for (const auto& [input, data] : lent) lend_input(input, data);
}

void GraphExecutor::bind_room(const std::vector<int64_t>& dims) {
  change_plan_of_run([&] {
    if (is_interpreted()) {
      change_plan(package_->interpret(dims));
      bind_values();
    } else {
      bind_dims(dims);
    }
  });
}

namespace {

Tensor copy_of(const package::Buffer& buffer, const void* data) {
  Tensor copy(buffer.dtype, buffer.shape);
  if (copy.num_bytes() != 0) std::memcpy(copy.data(), data, copy.num_bytes());
  return copy;
}

bool reaches(const Shape& shape, const Shape& other) {
  bool does = shape.size() == other.size();
  for (size_t d = 0; does && d < shape.size(); ++d) does = shape[d] >= other[d];
  return does;
}

/// The tensor at the first places of a buffer that reaches as far along each axis; zeros are behind it.
void place_at_first(const Tensor& tensor, const package::Buffer& buffer, std::byte* data) {
  std::fill_n(data, buffer.bytes, std::byte{0});
  const Shape& shape = tensor.shape();
  if (tensor.num_elements() == 0) return;
  // Axes behind which both are alike are moved as one.
  size_t rows = shape.size();
  size_t run = dtype_bytes(tensor.dtype()), step = run;
  while (rows > 0) {
    --rows;
    run *= static_cast<size_t>(shape[rows]);
    step *= static_cast<size_t>(buffer.shape[rows]);
    if (shape[rows] != buffer.shape[rows]) break;
  }
  const auto* from = static_cast<const std::byte*>(tensor.data());
  Shape index(rows, 0);
  for (size_t moved = 0; moved < tensor.num_bytes(); moved += run) {
    size_t at = 0;
    for (size_t d = 0; d < rows; ++d)
      at = at * static_cast<size_t>(buffer.shape[d]) + static_cast<size_t>(index[d]);
    std::memcpy(data + at * step, from + moved, run);
    for (size_t d = rows; d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

std::optional<GraphExecutor::LoopState> GraphExecutor::state_of_full_loop() const {
  // What stands before a segment would have to run again.
  if (!full_loop_ || bound_plan_->generic == nullptr || segments_) return std::nullopt;
  const LoopRunner& runner = loops_[*full_loop_];
  LoopState state{*full_loop_, runner.trip(), {}, {}, *room_counts_};
  const auto copies = [&](const std::vector<int32_t>& ids, std::vector<Tensor>& into) {
    for (const int32_t id : ids)
      into.push_back(copy_of(plan().buffers[static_cast<size_t>(id)], address(id)));
  };
  copies(runner.loop().carried, state.carried);
  copies(runner.loop().stacked, state.stacked);
  return state;
}

bool GraphExecutor::holds(const LoopState& state, const package::BoundPlan& before) const {
  if (bound_plan_->generic != before.generic) return false;
  const package::Loop& loop = loops_[state.loop].loop();
  const auto all_reach = [&](const std::vector<int32_t>& ids, const std::vector<Tensor>& tensors) {
    bool do_reach = true;
    for (size_t i = 0; i < ids.size(); ++i)
      do_reach = do_reach && reaches(plan().buffers[static_cast<size_t>(ids[i])].shape, tensors[i].shape());
    return do_reach;
  };
  return all_reach(loop.carried, state.carried) && all_reach(loop.stacked, state.stacked);
}

size_t GraphExecutor::go_on_with(const LoopState& state) {
  LoopRunner& runner = loops_[state.loop];
  const auto place = [&](const std::vector<int32_t>& ids, const std::vector<Tensor>& tensors) {
    for (size_t i = 0; i < ids.size(); ++i)
      place_at_first(tensors[i], plan().buffers[static_cast<size_t>(ids[i])],
                     static_cast<std::byte*>(address(ids[i])));
  };
  place(runner.loop().carried, state.carried);
  place(runner.loop().stacked, state.stacked);
  return runner.go_on(state.trip);
}

void GraphExecutor::bind_known_room(const std::vector<int64_t>& first) {
  // What the arena has is not asked for.
  const int64_t most = std::max(std::min(package::LoadedPackage::kManyRoomBytes, memory_budget_),
                                static_cast<int64_t>(arena_.size()));
  const std::vector<int64_t> known = package_->room_history().best(
      first, [&](const std::vector<int64_t>& dims) { return package_->arena_bytes(dims); }, most);
  try {
    bind_room(known);
  } catch (const Error& error) {
    if (known == first || error.code() != ErrorCode::kMemoryBudget) throw;
    bind_room(first);
  }
}

void GraphExecutor::note_room(const std::vector<int64_t>& first, bool is_enough) const {
  std::vector<int64_t> needed = dims();
  if (is_enough && needed != first) {
    RoomCounts counts;
    for (size_t i = 0; i < room_counts_->size(); ++i)
      counts.emplace(bound_plan_->room_checks[i].name, (*room_counts_)[i]);
    needed = rooms_for(*package_, memory_budget_, first, counts).value_or(needed);
  }
  if (const std::optional<int64_t> bytes = package_->arena_bytes(needed))
    package_->room_history().note(first, std::move(needed), *bytes);
}

void GraphExecutor::note_count(const Bound& bound, int64_t count) const {
  if (!bound.room_check) return;
  int64_t& most = (*room_counts_)[*bound.room_check];
  most = std::max(most, count);
}

void GraphExecutor::run(parallel::ThreadPool& pool, const RunOptions& options) {
  if (is_interpreted() && left_ && left_->interpreted == dims())
    change_plan_of_run([this] { change_plan(package_->bind(left_->planned)); });
  left_.reset();
  try {
    return run_with_rooms(pool, options);
  } catch (const OtherGraph&) {
    if (!package_->interprets() || is_interpreted()) throw;
  }
  // The data of other runs may be such that the plan serves them.
  const bool is_of_data = segments_.has_value();
  package::RunValues values;
  for (size_t i = 0; is_of_data && i < inputs().size(); ++i) values.emplace(inputs()[i].name, input_copy(i));
  change_plan_of_run([&] {
    change_plan(is_of_data ? package_->interpret_run(dims(), values) : package_->interpret(dims()));
  });
  if (is_of_data) left_ = LeftPlan{dims(), dims()};
  check_set();
  run_with_rooms(pool, options);
}

std::optional<std::vector<int64_t>> GraphExecutor::bind_more_room(Rooms& rooms, const NoRoom& error,
                                                                  bool goes_on,
                                                                  const std::vector<int64_t>& first) {
  const std::vector<int64_t> lacking = dims();
  const bool may_leave = !is_interpreted() && package_->interprets();
  std::optional<std::vector<int64_t>> next =
      is_interpreted() ? rooms.grown(lacking, error) : rooms.more(lacking, error, goes_on);
  if (next) {
    try {
      bind_room(*next);
      return next;
    } catch (const Error& larger) {
      if (!may_leave || larger.code() != ErrorCode::kMemoryBudget) throw;
    }
  }
  if (may_leave) next = rooms.grown(lacking, error);
  if (!may_leave || !next) return std::nullopt;
  change_plan_of_run([&] { change_plan(package_->interpret(*next)); });
  left_ = LeftPlan{first, *next};
  return next;
}

void GraphExecutor::run_with_rooms(parallel::ThreadPool& pool, const RunOptions& options) {
  retry_refused();
  const auto is_given = [&](size_t i) { return input_set_[i] || waiting_.count(i) != 0; };
  bool are_given = true;
  for (size_t i = 0; i < inputs().size(); ++i) are_given = are_given && is_given(i);
  if (are_given) settle_shapes();
  check_set();
  bind_values();
  Rooms rooms(*package_, memory_budget_);
  if (rooms.empty()) return run_bound(pool, options, std::nullopt);
  std::optional<std::vector<int64_t>> first, next;
  if (!is_interpreted()) first = package_->first_room(dims());
  if (first) bind_known_room(*first);
  check_set();
  std::optional<LoopState> state;
  for (;;) {
    try {
      run_bound(pool, options, state);
      if (first) note_room(*first, !next);
      return;
    } catch (const NoRoom& error) {
      state = state_of_full_loop();
      const std::shared_ptr<const package::BoundPlan> before = bound_plan_;
      try {
        next = bind_more_room(rooms, error, state.has_value(), first.value_or(dims()));
      } catch (Error& larger) {
        larger.add_context(error.message());
        throw;
      }
      if (!next) throw;
      if (left_) left_->interpreted = *next;
      // A plan that no compiler writes may have another shape of an input for each room.
      check_set();
      if (state && !holds(*state, *before)) state.reset();
    }
  }
}

}  // namespace tensormill::exec
