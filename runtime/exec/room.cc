// Runs of packages with rooms: again with more of them where a run needs more.
#include <algorithm>
#include <cmath>

#include "runtime/base/no_room.h"
#include "runtime/exec/graph_executor.h"

namespace tensormill::exec {

void GraphExecutor::bind_room(const std::vector<int64_t>& dims) {
  std::map<size_t, std::byte*> lent;
  for (size_t i = 0; i < inputs().size(); ++i) {
    if (const auto found = lent_.find(inputs()[i].buffer); found != lent_.end())
      lent.emplace(i, found->second);
  }
  bind_dims(dims);
  for (const auto& [input, data] : lent) lend_input(input, data);
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
  /// lack was of may be smaller than before, where the others take much memory.
  std::optional<std::vector<int64_t>> more(const std::vector<int64_t>& dims, const NoRoom& error) {
    std::vector<package::RoomWish> wishes;
    for (size_t i = 0; i < dims_.size(); ++i) {
      if ((error.rooms() >> i & 1) != 0)
        wishes.push_back({dims_[i], wanted_room(error, dims[dims_[i]], before_)});
    }
    if (++restarts_ > kMostRestarts) return std::nullopt;
    std::optional<std::vector<int64_t>> next =
        package::with_more_room(package_.package().plans(), dims, wishes);
    if (!next) return std::nullopt;
    before_.reset();
    if (wishes.size() == 1) before_ = Lack{error, dims[wishes[0].dim]};
    for (size_t i = 0; i < dims_.size(); ++i) {
      if ((*next)[dims_[i]] > dims[dims_[i]]) least_[i] = (*next)[dims_[i]];
    }
    if (dims_.size() == 1) return next;
    return package_.with_less_room(*next, least_, std::min(package::LoadedPackage::kManyRoomBytes, budget_));
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

void GraphExecutor::run(parallel::ThreadPool& pool, const RunOptions& options) {
  check_set();
  Rooms rooms(*package_, memory_budget_);
  if (rooms.empty()) return run_bound(pool, options);
  std::optional<std::vector<int64_t>> next = package_->first_room(dims());
  if (next) bind_room(*next);
  check_set();
  for (;;) {
    try {
      return run_bound(pool, options);
    } catch (const NoRoom& error) {
      next = rooms.more(dims(), error);
      if (!next) throw;
      try {
        bind_room(*next);
      } catch (Error& larger) {
        larger.add_context(error.message());
        throw;
      }
      // A plan that no compiler writes may have another shape of an input for each room.
      check_set();
    }
  }
}

}  // namespace tensormill::exec
