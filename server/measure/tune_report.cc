#include "server/measure/tune_report.h"

#include <algorithm>
#include <cmath>

namespace tensormill::measure {

namespace {

/// JSON has no infinity: null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

double gflops(double flops, double seconds) { return flops / seconds / 1e9; }

/// What a kernel reads and writes at least.
int64_t least_bytes(const tune::Task& task) {
  const ir::Graph& region = *task.kernel.region;
  int64_t bytes = 0;
  for (const std::vector<ir::ValueId>& values : {region.inputs(), region.outputs()}) {
    for (const ir::ValueId value : values) {
      const ir::ValueType& type = region.value(value).type;
      bytes += num_elements(type.shape) * static_cast<int64_t>(dtype_bytes(type.dtype));
    }
  }
  return bytes;
}

Json task_json(const tune::TaskState& state) {
  Json failures = Json::object();
  for (const auto& [cause, count] : state.failures) {
    const auto first = state.first.find(cause);
    failures[cause] = {{"count", count}, {"first", first == state.first.end() ? "" : first->second}};
  }
  return {{"task", state.task.key()},
          {"name", state.task.name},
          {"layer", state.task.layer},
          {"algorithm", state.task.algorithm},
          {"calls", state.task.calls},
          {"trials", state.attempts},
          {"reused", false},
          {"default_ms", number(state.default_seconds * 1e3)},
          {"best_ms", number(state.best_seconds * 1e3)},
          {"gflops", number(gflops(static_cast<double>(state.task.kernel.flops), state.best_seconds))},
          {"flops", state.task.kernel.flops},
          {"bytes", least_bytes(state.task)},
          {"failures", std::move(failures)}};
}

double weighted(const Json& tasks, const char* member) {
  double sum = 0;
  for (const Json& task : tasks) {
    if (task.at(member).is_number()) sum += task.at(member).get<double>() * task.at("calls").get<double>();
  }
  return sum;
}

}  // namespace

Json reused_task(const tune::Task& task, const target::Target& target,
                 const std::vector<tune::Record>& records) {
  const tune::Space space(task, target);
  const std::string analytic = schedule::print(space.analytic().schedule);
  double default_seconds = std::numeric_limits<double>::infinity();
  double best = default_seconds;
  double final = default_seconds;
  for (const tune::Record& record : records) {
    if (record.task_key != task.key()) continue;
    const double seconds = record.median_seconds();
    if (record.final) final = seconds;
    if (!record.final && record.schedule == analytic) default_seconds = std::min(default_seconds, seconds);
    best = std::min(best, seconds);
  }
  if (std::isfinite(final)) best = final;
  return {{"task", task.key()},
          {"name", task.name},
          {"layer", task.layer},
          {"algorithm", task.algorithm},
          {"calls", task.calls},
          {"trials", 0},
          {"reused", true},
          {"default_ms", number(default_seconds * 1e3)},
          {"best_ms", number(best * 1e3)},
          {"gflops", number(gflops(static_cast<double>(task.kernel.flops), best))},
          {"flops", task.kernel.flops},
          {"bytes", least_bytes(task)},
          {"failures", Json::object()}};
}

Json TuneReport::totals(const tune::TuneSession& session) const {
  const int64_t done = session.trials() - known_;
  const int64_t total = session.trial_budget() - known_;
  const double spent = clock_() - start_;
  Json json = {{"stage", "tune"},
               {"done", done},
               {"total", total},
               {"known", known_},
               {"default_ms", session.default_latency() * 1e3 + weighted(reused_, "default_ms")},
               {"best_ms", session.best_latency() * 1e3 + weighted(reused_, "best_ms")}};
  if (done > own_)
    json["eta_s"] =
        spent / static_cast<double>(done - own_) * static_cast<double>(std::max<int64_t>(total - done, 0));
  return json;
}

void TuneReport::start(const tune::TuneSession& session, int64_t known, int64_t own) {
  start_ = clock_();
  known_ = known;
  own_ = trial_ = own;
  for (const tune::TaskState& state : session.tasks())
    tasks_[state.task.key()] = {state.task.name, static_cast<double>(state.task.kernel.flops)};
  Json json = totals(session);
  json["tasks"] = reused_;
  for (const tune::TaskState& state : session.tasks()) {
    json["tasks"].push_back(task_json(state));
    reported_[state.task.key()] = state.attempts;
  }
  channel_.progress(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void TuneReport::record(const tune::Record& record) {
  const auto& [name, flops] = tasks_.at(record.task_key);
  const double seconds = record.median_seconds();
  const Json json = {{"line", tune::to_line(record)},
                     {"task", record.task_key},
                     {"name", name},
                     {"trial", record.final ? trial_ : ++trial_},
                     {"final", record.final},
                     {"error", record.error == tune::TrialError::kNone ? "" : tune::to_text(record.error)},
                     {"ms", number(seconds * 1e3)},
                     {"gflops", number(gflops(flops, seconds))}};
  channel_.event("record", json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void TuneReport::progress(const tune::TuneSession& session) {
  Json json = totals(session);
  json["tasks"] = Json::array();
  for (const tune::TaskState& state : session.tasks()) {
    int64_t& reported = reported_[state.task.key()];
    if (reported == state.attempts) continue;
    reported = state.attempts;
    json["tasks"].push_back(task_json(state));
  }
  channel_.progress(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json TuneReport::result(const tune::TuneSession& session) const {
  Json json = totals(session);
  json.erase("stage");
  json.erase("done");
  json.erase("total");
  json.erase("eta_s");
  json["trials"] = session.trials() - known_;
  json["build_seconds"] = session.build_seconds();
  json["run_seconds"] = session.run_seconds();
  json["tasks"] = reused_;
  for (const tune::TaskState& state : session.tasks()) json["tasks"].push_back(task_json(state));
  return json;
}

}  // namespace tensormill::measure
