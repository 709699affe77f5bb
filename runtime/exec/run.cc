// Runs: of the plan that is bound, or of the interpreter's where that does not take the run.
#include <map>

#include "runtime/base/error.h"
#include "runtime/base/other_graph.h"
#include "runtime/exec/graph_executor.h"

namespace tensormill::exec {

void GraphExecutor::swap_plan(const std::function<void()>& change) {
  std::map<size_t, std::byte*> lent;
  for (size_t i = 0; i < inputs().size(); ++i) {
    if (const auto found = lent_.find(inputs()[i].buffer); found != lent_.end())
      lent.emplace(i, found->second);
  }
  change();
  for (const auto& [input, data] : lent) lend_input(input, data);
}

void GraphExecutor::run(parallel::ThreadPool& pool, const RunOptions& options) {
  if (is_interpreted() && left_ == dims()) swap_plan([this] { change_plan(package_->bind(dims())); });
  left_.reset();
  try {
    return run_as_set(pool, options);
  } catch (const OtherGraph&) {
    if (!package_->interprets() || is_interpreted()) throw;
  }
  // The data of other runs may be such that the plan serves them.
  const bool is_of_data = segments_.has_value();
  package::RunValues values;
  for (size_t i = 0; is_of_data && i < inputs().size(); ++i) values.emplace(inputs()[i].name, input_copy(i));
  swap_plan([&] {
    change_plan(is_of_data ? package_->interpret_run(dims(), values) : package_->interpret(dims()));
  });
  if (is_of_data) left_ = dims();
  check_set();
  run_as_set(pool, options);
}

void GraphExecutor::run_as_set(parallel::ThreadPool& pool, const RunOptions& options) {
  retry_refused();
  const auto is_given = [&](size_t i) { return input_set_[i] || waiting_.count(i) != 0; };
  bool are_given = true;
  for (size_t i = 0; i < inputs().size(); ++i) are_given = are_given && is_given(i);
  if (are_given) settle_shapes();
  check_set();
  bind_values();
  run_bound(pool, options);
}

}  // namespace tensormill::exec
