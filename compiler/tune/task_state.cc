#include "compiler/tune/task_state.h"

#include <algorithm>
#include <cmath>

namespace tensormill::tune {

namespace {

constexpr size_t kWindow = 24;         // trials that count as recent
constexpr double kRecentWeight = 0.3;  // of what was saved lately, against what may be left
// A task is given up at these times the best of its group, after its first trials or after the very first.
constexpr int64_t kFirstTrials = 8;
constexpr double kFarBehind = 1.5, kHopeless = 3;

// What is known of a group's tasks together.
struct Group {
  double best = std::numeric_limits<double>::infinity();
  double second = std::numeric_limits<double>::infinity();  // best, but of another task
  int64_t calls = 0;

  void add(const TaskState& state) {
    calls += state.task.calls;
    second = std::min(second, std::max(best, state.best_seconds));
    best = std::min(best, state.best_seconds);
  }
};

double rate(const TaskState& state) {
  return static_cast<double>(state.task.kernel.flops) / state.best_seconds;
}

bool is_given_up(const TaskState& state, const Group& group) {
  const double factor = state.attempts < kFirstTrials ? kHopeless : kFarBehind;
  return state.best_seconds > factor * group.best;
}

double expected_saving(const TaskState& state, const Group& group, double best_rate) {
  const double best = state.best_seconds;
  const size_t count = state.best_after.size();
  const double before = state.best_after[count > kWindow ? count - 1 - kWindow : 0];
  const double others = best > group.best ? group.best : group.second;
  const double saved = std::max(std::min(before, others) - best, 0.0);
  const double recent = saved / static_cast<double>(std::min(count, kWindow));
  const double hope = std::max(group.best - best / 2, 0.0) / static_cast<double>(state.attempts + 1);
  const double ideal = static_cast<double>(state.task.kernel.flops) / (2 * best_rate);
  const double left = std::min(hope, std::max(group.best - ideal, 0.0));
  return static_cast<double>(std::max<int64_t>(group.calls, 1)) *
         (kRecentWeight * recent + (1 - kRecentWeight) * left);
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
  std::vector<Group> groups(count_groups(tasks));
  for (const TaskState& state : tasks) {
    groups[state.group].add(state);
    if (!state.best_after.empty()) best_rate = std::max(best_rate, rate(state));
  }
  std::optional<size_t> chosen;
  double most = -1;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Group& group = groups[tasks[i].group];
    if (tasks[i].exhausted || tasks[i].attempts == 0) continue;
    const bool measured = !tasks[i].best_after.empty();
    if (measured && is_given_up(tasks[i], group)) continue;
    const double saving = measured ? expected_saving(tasks[i], group, best_rate) : 0;
    if (saving <= most) continue;
    most = saving;
    chosen = i;
  }
  return chosen;
}

void form_groups(std::vector<TaskState>& tasks) {
  std::map<std::string, size_t> numbers;
  for (TaskState& state : tasks) {
    const std::string name = state.task.layer.empty() ? state.task.key() : state.task.layer;
    state.group = numbers.emplace(name, numbers.size()).first->second;
  }
}

size_t count_groups(const std::vector<TaskState>& tasks) {
  size_t count = 0;
  for (const TaskState& state : tasks) count = std::max(count, state.group + 1);
  return count;
}

}  // namespace tensormill::tune
