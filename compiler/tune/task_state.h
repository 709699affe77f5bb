/// What a tuning session knows of one task, and which task the next trials go to.
/// Thread-safety: values and pure functions.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/tune/task.h"
#include "compiler/tune/tuner.h"

namespace tensormill::tune {

struct TaskState {
  Task task;
  /// Tasks of one group stand in for each other: the algorithms of a layer. Other tasks are alone in theirs.
  size_t group = 0;
  std::unique_ptr<Space> space;
  std::unique_ptr<Tuner> tuner;
  std::vector<Trial> trials;  ///< that were measured, in order; the first is the analytic point
  double default_seconds = std::numeric_limits<double>::infinity();
  double best_seconds = std::numeric_limits<double>::infinity();
  std::vector<double> best_after;            ///< best_seconds after each trial
  int64_t attempts = 0;                      ///< trials, failed ones too
  int64_t since_best = 0;                    ///< attempts since the best one
  std::map<std::string, int64_t> failures;   ///< by cause
  std::map<std::string, std::string> first;  ///< message of the first failure of a cause
  bool exhausted = false;                    ///< no more new points, or stopped early
  bool rejected = false;                     ///< at last not faster than another task of its group

  void add(Trial trial);
};

/// The task whose next trial is expected to save most of the model's time; nothing when all are exhausted.
/// Expected from what the last trials saved, and from what is left at most: half of the time a task takes
/// with ever less hope for each trial spent, and no more than what separates it from twice the rate of the
/// best task. After the gradient of Zheng et al., "Ansor" (OSDI 2020), section 6. Of a task that stands
/// beside others in its group only what goes below the best of them counts; one whose first trials stay far
/// behind gets no more.
std::optional<size_t> next_task(const std::vector<TaskState>& tasks);

/// Sets `group` of each.
void form_groups(std::vector<TaskState>& tasks);
/// The groups' numbers are 0 to what this gives less 1.
size_t count_groups(const std::vector<TaskState>& tasks);

}  // namespace tensormill::tune
