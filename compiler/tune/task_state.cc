#include "compiler/tune/task_state.h"

#include <algorithm>
#include <cmath>

namespace tensormill::tune {

namespace {

constexpr size_t kWindow = 24;         // trials that count as recent
constexpr double kRecentWeight = 0.3;  // of what was saved lately, against what may be left

double rate(const TaskState& state) {
  return static_cast<double>(state.task.kernel.flops) / state.best_seconds;
}

double expected_saving(const TaskState& state, double best_rate) {
  const double best = state.best_seconds;
  const size_t count = state.best_after.size();
  const double before = state.best_after[count > kWindow ? count - 1 - kWindow : 0];
  const double recent = (before - best) / static_cast<double>(std::min(count, kWindow));
  const double hope = best / 2 / static_cast<double>(state.attempts + 1);
  const double ideal = static_cast<double>(state.task.kernel.flops) / (2 * best_rate);
  const double left = std::min(hope, std::max(best - ideal, 0.0));
  return static_cast<double>(state.task.calls) * (kRecentWeight * recent + (1 - kRecentWeight) * left);
}

}  // namespace

void TaskState::add(Trial trial) {
  ++attempts;
  ++since_best;
  if (trial.seconds < best_seconds) {
    best_seconds = trial.seconds;
    since_best = 0;
  }
  if (std::isfinite(best_seconds)) best_after.push_back(best_seconds);
  trials.push_back(std::move(trial));
}

std::optional<size_t> next_task(const std::vector<TaskState>& tasks) {
  double best_rate = 1;
  for (const TaskState& state : tasks) {
    if (!state.best_after.empty()) best_rate = std::max(best_rate, rate(state));
  }
  std::optional<size_t> chosen;
  double most = -1;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].exhausted || tasks[i].attempts == 0) continue;
    const double saving = tasks[i].best_after.empty() ? 0 : expected_saving(tasks[i], best_rate);
    if (saving <= most) continue;
    most = saving;
    chosen = i;
  }
  return chosen;
}

}  // namespace tensormill::tune
