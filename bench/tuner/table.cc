#include "bench/tuner/table.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "compiler/driver/compile.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::bench {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

tune::MeasureOptions table_options() {
  tune::MeasureOptions options;
  options.repeat = 4;
  options.min_repeat_ms = 4;
  return options;
}

std::string key_of(const std::string& task, const std::string& schedule) { return task + "\n" + schedule; }

double fastest(const std::vector<double>& seconds) {
  return seconds.empty() ? std::numeric_limits<double>::infinity()
                         : *std::min_element(seconds.begin(), seconds.end());
}

}  // namespace

Table::Table(const target::Target& target, std::string program, const std::string& path)
    : target_(target), backend_(codegen::make_llvm_backend()), measurer_({.program = std::move(program)}) {
  if (path.empty()) return;
  log_ = std::make_unique<tune::RecordLog>(path);
  for (const tune::Record& record : tune::parse_records(read_file(path))) {
    if (record.codegen != driver::compiler_build() || record.target != target_.canonical()) continue;
    known_[key_of(record.task_key, record.schedule)] = fastest(record.seconds);
  }
}

void Table::select(const TunedTask& task) {
  if (selected_ == &task) return;
  reference_ = tune::make_reference(task.task);
  measurer_.set_task(task.task, reference_);
  selected_ = &task;
}

Table::Built Table::build(const TunedTask& task, const tune::Point& point) const {
  const double start = now();
  Built built;
  try {
    built.kernel = driver::build_kernel(task.task.kernel, point.schedule, target_, *backend_);
  } catch (const Error& error) {
    built.outcome = {tune::TrialError::kInstantiation, error.message(), {}};
  }
  built.cost.build = now() - start;
  return built;
}

tune::Measurement Table::run(const TunedTask& task, Built& built, const tune::MeasureOptions& options) {
  if (built.outcome.error != tune::TrialError::kNone) return built.outcome;
  select(task);
  const double start = now();
  tune::Measurement result = measurer_.measure(built.kernel.object, built.kernel.workspace, options);
  built.cost.run = now() - start;
  return result;
}

double Table::keep(const TunedTask& task, const tune::Point& point, const tune::Measurement& result,
                   const TrialCost& cost) {
  ++measured_;
  failed_ += result.error == tune::TrialError::kNone ? 0 : 1;
  const double seconds = result.error == tune::TrialError::kNone ? fastest(result.seconds) : fastest({});
  const std::string schedule = schedule::print(point.schedule);
  known_[key_of(task.task.key(), schedule)] = seconds;
  if (!log_) return seconds;
  tune::Record record;
  record.target = target_.canonical();
  record.task = task.task.name;
  record.args = task.task.args;
  record.task_key = task.task.key();
  record.index = point.index;
  record.knobs = point.knobs;
  record.schedule = schedule;
  record.error = result.error;
  if (result.error == tune::TrialError::kNone) record.seconds = result.seconds;
  record.all_seconds = cost.build + cost.run;
  record.codegen = driver::compiler_build();
  record.space_digest = task.space.digest();
  log_->append(record);
  return seconds;
}

double Table::seconds(const TunedTask& task, const tune::Point& point) {
  return seconds_of_all(task, {point})[0];
}

std::vector<double> Table::seconds_of_all(const TunedTask& task, const std::vector<tune::Point>& points) {
  const auto known = [&](const tune::Point& point) {
    return known_.find(key_of(task.task.key(), schedule::print(point.schedule)));
  };
  std::vector<Built> built(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    if (known(points[i]) == known_.end()) built[i] = build(task, points[i]);
  }
  std::vector<double> seconds;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto found = known(points[i]);
    seconds.push_back(found != known_.end()
                          ? found->second
                          : keep(task, points[i], run(task, built[i], table_options()), built[i].cost));
  }
  return seconds;
}

std::vector<TrialCost> Table::costs(const TunedTask& task, const std::vector<tune::Point>& points,
                                    const tune::MeasureOptions& options) {
  std::vector<TrialCost> costs;
  for (const tune::Point& point : points) {
    Built built = build(task, point);
    if (run(task, built, options).error == tune::TrialError::kNone) costs.push_back(built.cost);
  }
  return costs;
}

}  // namespace tensormill::bench
