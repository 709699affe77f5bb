// Runs of packages with rooms: again with more of them where a run needs more.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/no_room.h"
#include "runtime/base/other_graph.h"
#include "runtime/exec/graph_executor.h"

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

/// What a run lacked, and how large the room was.
struct Lack {
  NoRoom error;
  int64_t room;
};

/// How large a room of which there is `room` has to be for what was wanted; 0: that is not known. What is
/// made of it alone is as a multiple of it, or, as the lack of before shows, a sum.
int64_t wanted_room(const NoRoom& error, int64_t room, const std::optional<Lack>& before) {
  if (!error.wanted() || error.had() <= 0) return 0;
  const auto had = static_cast<double>(error.had()), lacks = static_cast<double>(*error.wanted()) - had;
  double growth = had / static_cast<double>(room);
  const bool is_same = before && before->error.rooms() == error.rooms() &&
                       before->error.wanted() == error.wanted() && before->error.had() < error.had() &&
                       before->room < room;
  if (is_same)
    growth =
        static_cast<double>(error.had() - before->error.had()) / static_cast<double>(room - before->room);
  const double more = std::ceil(lacks / growth);
  if (!(more > 0)) return 0;
  return room + static_cast<int64_t>(std::min(more, static_cast<double>(package::kMaxFreeDim)));
}

/// The rooms of a run, from the first one on.
class Rooms {
public:
  Rooms(const package::LoadedPackage& package, int64_t budget)
      : package_(package),
        budget_(budget),
        dims_(package::room_dims(package.package().plans())),
        least_(dims_.size(), 1) {}

  bool empty() const { return dims_.empty(); }

  /// What the run goes on with that lacked room at `dims`; nothing where there is no more. The rooms that no
  /// lack was of may be smaller than before, where the others take much memory. `goes_on`: nothing that is
  /// done is lost, so that less at a time is enough.
  std::optional<std::vector<int64_t>> more(const std::vector<int64_t>& dims, const NoRoom& error,
                                           bool goes_on) {
    std::vector<package::RoomWish> wishes;
    for (size_t i = 0; i < dims_.size(); ++i) {
      if ((error.rooms() >> i & 1) != 0)
        wishes.push_back({dims_[i], wanted_room(error, dims[dims_[i]], before_)});
    }
    if (++restarts_ > kMostRestarts) return std::nullopt;
    const auto more_room = [&] {
      return package::with_more_room(package_.package().plans(), dims, wishes,
                                     goes_on ? package::kRoomGrowth / 2 : package::kRoomGrowth);
    };
    std::optional<std::vector<int64_t>> next = more_room();
    if (!next && !package_.package().plans().generic) {
      // What the largest of the package's rooms lacks is what there is to say.
      for (package::RoomWish& wish : wishes) wish.wanted = 0;
      next = more_room();
    }
    if (!next) return std::nullopt;
    before_.reset();
    if (wishes.size() == 1) before_ = Lack{error, dims[wishes[0].dim]};
    for (size_t i = 0; i < dims_.size(); ++i) {
      if ((*next)[dims_[i]] > dims[dims_[i]]) least_[i] = (*next)[dims_[i]];
    }
    if (dims_.size() == 1) return next;
    return package_.with_less_room(*next, least_, std::min(package::LoadedPackage::kManyRoomBytes, budget_));
  }

  /// The same for a plan that is made of any room.
  std::optional<std::vector<int64_t>> grown(std::vector<int64_t> dims, const NoRoom& error) {
    bool is_past = ++restarts_ > kMostRestarts;
    for (size_t i = 0; i < dims_.size(); ++i) {
      if ((error.rooms() >> i & 1) == 0) continue;
      int64_t& room = dims[dims_[i]];
      room = std::max(wanted_room(error, room, std::nullopt), room * package::kRoomGrowth);
      is_past = is_past || room > package::kMaxFreeDim;
    }
    return is_past ? std::nullopt : std::optional(std::move(dims));
  }

private:
  /// Of one run: a few for each room, which grows each time.
  static constexpr int kMostRestarts = 256;

  const package::LoadedPackage& package_;
  int64_t budget_;
  std::vector<size_t> dims_;    ///< which of the free ones they are
  std::vector<int64_t> least_;  ///< of each: what has been lacking
  std::optional<Lack> before_;
  int restarts_ = 0;
};

}  // namespace

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
  if (!full_loop_ || bound_plan_->generic == nullptr) return std::nullopt;
  const LoopRunner& runner = loops_[*full_loop_];
  LoopState state{*full_loop_, runner.trip(), {}, {}};
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

void GraphExecutor::run(parallel::ThreadPool& pool, const RunOptions& options) {
  try {
    return run_with_rooms(pool, options);
  } catch (const OtherGraph&) {
    if (!package_->interprets() || is_interpreted()) throw;
  }
  change_plan_of_run([this] { change_plan(package_->interpret(dims())); });
  check_set();
  run_with_rooms(pool, options);
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
  std::optional<std::vector<int64_t>> next;
  if (!is_interpreted()) next = package_->first_room(dims());
  if (next) bind_room(*next);
  check_set();
  std::optional<LoopState> state;
  for (;;) {
    try {
      return run_bound(pool, options, state);
    } catch (const NoRoom& error) {
      state = state_of_full_loop();
      const std::shared_ptr<const package::BoundPlan> before = bound_plan_;
      next = is_interpreted() ? rooms.grown(dims(), error) : rooms.more(dims(), error, state.has_value());
      if (!next) throw;
      try {
        bind_room(*next);
      } catch (Error& larger) {
        larger.add_context(error.message());
        throw;
      }
      // A plan that no compiler writes may have another shape of an input for each room.
      check_set();
      if (state && !holds(*state, *before)) state.reset();
    }
  }
}

}  // namespace tensormill::exec
