#include "bench/tuner/table.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "bench/support/seconds.h"
#include "compiler/driver/compile.h"
#include "runtime/base/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tensormill::bench {

namespace {

tune::MeasureOptions table_options() {
  tune::MeasureOptions options;
  options.repeat = 4;
  options.min_repeat_ms = 4;
  return options;
}

std::string key_of(const std::string& task, const std::string& schedule) { return task + "\n" + schedule; }

// A line of JSON, then the object's bytes.
std::string to_file(const driver::BuiltKernel& kernel, const tune::Measurement& outcome) {
  const Json head = {
      {"error", static_cast<int>(outcome.error)}, {"message", outcome.message},
      {"symbol", kernel.object.symbol},           {"shared", kernel.workspace.shared_bytes},
      {"worker", kernel.workspace.worker_bytes},  {"sharing", static_cast<int>(kernel.workspace.sharing)}};
  return head.dump() + "\n" + kernel.object.bytes;
}

void from_file(const std::string& text, driver::BuiltKernel& kernel, tune::Measurement& outcome) {
  const size_t end = text.find('\n');
  const Json head = parse_json(text.substr(0, end));
  outcome.error = static_cast<tune::TrialError>(head.at("error").get<int>());
  outcome.message = head.at("message").get<std::string>();
  kernel.object.symbol = head.at("symbol").get<std::string>();
  kernel.object.bytes = text.substr(end + 1);
  kernel.workspace.shared_bytes = head.at("shared").get<int64_t>();
  kernel.workspace.worker_bytes = head.at("worker").get<int64_t>();
  kernel.workspace.sharing = static_cast<package::Sharing>(head.at("sharing").get<int>());
}

void keep_least(std::map<std::string, double>& known, const std::string& key, double seconds) {
  const auto [place, is_new] = known.emplace(key, seconds);
  if (!is_new) place->second = std::min(place->second, seconds);
}

double fastest(const std::vector<double>& seconds) {
  return seconds.empty() ? std::numeric_limits<double>::infinity()
                         : *std::min_element(seconds.begin(), seconds.end());
}

}  // namespace

Table::Table(const target::Target& target, std::string program, const std::string& path, std::string objects)
    : target_(target),
      backend_(codegen::make_llvm_backend()),
      measurer_({.program = std::move(program)}),
      objects_(std::move(objects)) {
  if (path.empty()) return;
  log_ = std::make_unique<tune::RecordLog>(path);
  for (const tune::Record& record : tune::parse_records(read_file(path))) {
    if (record.codegen != driver::code_generator() || record.target != target_.canonical()) continue;
    keep_least(known_, key_of(record.task_key, record.schedule), fastest(record.seconds));
  }
}

void Table::select(const TunedTask& task) {
  if (selected_ == &task) return;
  workloads_ = tune::make_workloads(task.task);
  measurer_.set_task(task.task, workloads_.at(0));
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

bool Table::is_known(const TunedTask& task, const tune::Point& point) const {
  return known_.count(key_of(task.task.key(), schedule::print(point.schedule))) != 0;
}

Table::Built Table::build_or_load(const TunedTask& task, const tune::Point& point) const {
  if (objects_.empty()) return build(task, point);
  const std::string key =
      driver::code_generator() + target_.canonical() + task.task.key() + schedule::print(point.schedule);
  const std::string path = objects_ + "/" + Digest::of(key).hex();
  if (!std::filesystem::exists(path)) {
    const Built fresh = build(task, point);
    write_file(path, to_file(fresh.kernel, fresh.outcome));
    return fresh;
  }
  Built built;
  from_file(read_file(path), built.kernel, built.outcome);
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
  keep_least(known_, key_of(task.task.key(), schedule), seconds);
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
  record.codegen = driver::code_generator();
  record.space_digest = task.space.digest();
  log_->append(record);
  return seconds;
}

double Table::seconds(const TunedTask& task, const tune::Point& point) {
  return seconds_of_all(task, {point})[0];
}

std::vector<double> Table::seconds_of_all(const TunedTask& task, const std::vector<tune::Point>& points) {
  std::vector<Built> built(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    if (!is_known(task, points[i])) built[i] = build_or_load(task, points[i]);
  }
  std::vector<double> seconds;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto found = known_.find(key_of(task.task.key(), schedule::print(points[i].schedule)));
    seconds.push_back(found != known_.end()
                          ? found->second
                          : keep(task, points[i], run(task, built[i], table_options()), built[i].cost));
  }
  return seconds;
}

void Table::prepare(const TunedTask& task, const std::vector<tune::Point>& points) {
  TM_CHECK(!objects_.empty(), "there is no folder of objects");
  for (const tune::Point& point : points) {
    if (!is_known(task, point)) build_or_load(task, point);
  }
}

std::vector<double> Table::seconds_again(const TunedTask& task, const std::vector<tune::Point>& points) {
  std::vector<Built> built;
  for (const tune::Point& point : points) built.push_back(build_or_load(task, point));
  std::vector<double> seconds;
  for (size_t i = 0; i < points.size(); ++i)
    seconds.push_back(keep(task, points[i], run(task, built[i], table_options()), built[i].cost));
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
