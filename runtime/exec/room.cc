// Runs of packages with a room: again with more of it where a run needs more.
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

/// How much room there has to be for what was wanted, of which there is as much as the room is large; 0: that
/// is not known.
int64_t wanted_room(const NoRoom& error, int64_t room) {
  if (!error.wanted() || error.had() <= 0) return 0;
  const double wanted = static_cast<double>(*error.wanted()) / static_cast<double>(error.had());
  return static_cast<int64_t>(
      std::min(std::ceil(wanted * static_cast<double>(room)), static_cast<double>(package::kMaxFreeDim)));
}

}  // namespace

void GraphExecutor::run(parallel::ThreadPool& pool, const RunOptions& options) {
  check_set();
  const package::PlanSet& plans = package_->package().plans();
  const std::optional<size_t> room = package::room_dim(plans);
  if (!room) return run_bound(pool, options);
  std::optional<std::vector<int64_t>> next = package_->first_room(dims());
  if (next) bind_room(*next);
  for (;;) {
    try {
      return run_bound(pool, options);
    } catch (const NoRoom& error) {
      next = package::with_more_room(plans, dims(), dims()[*room], wanted_room(error, dims()[*room]));
      if (!next) throw;
      try {
        bind_room(*next);
      } catch (Error& larger) {
        larger.add_context(error.message());
        throw;
      }
    }
  }
}

}  // namespace tensormill::exec
