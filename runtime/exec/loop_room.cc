// Runs of packages whose loops have a room: again with more of it where a run needs more.
#include "runtime/base/error.h"
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

void GraphExecutor::run(parallel::ThreadPool& pool, const RunOptions& options) {
  check_set();
  const package::PlanSet& plans = package_->package().plans();
  const std::optional<size_t> room = package::loop_room_dim(plans);
  if (!room) return run_bound(pool, options);
  std::optional<std::vector<int64_t>> next = package::with_more_room(plans, dims(), 0);
  if (next) bind_room(*next);
  for (;;) {
    try {
      return run_bound(pool, options);
    } catch (const NoLoopRoom& error) {
      next = package::with_more_room(plans, dims(), dims()[*room]);
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
