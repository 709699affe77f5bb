#include "compiler/tune/choose.h"

namespace tensormill::tune {

namespace {

std::string why_not(const Record& record, const std::string& target, const std::string& codegen) {
  if (record.target != target) return "its records are for another target";
  if (record.codegen != codegen) return "its records are of another compiler";
  if (record.error != TrialError::kNone) return "its trials failed";
  return "";
}

bool is_better(const Record& a, const Record& b) {
  if (a.final != b.final) return a.final;
  if (a.final) return a.timestamp > b.timestamp;
  return a.median_seconds() < b.median_seconds();
}

using Algorithms = std::map<std::string, const Record*>;

// The algorithm that takes the place of `rule`.
std::string best_instead_of(const Algorithms& algorithms, const std::string& rule) {
  const Record& own = *algorithms.at(rule);
  std::string best = rule;
  double bar = own.median_seconds() * kBeyondNoise;
  for (const auto& [algorithm, record] : algorithms) {
    if (record->final != own.final || !(record->median_seconds() < bar)) continue;
    best = algorithm;
    bar = record->median_seconds();
  }
  return best;
}

}  // namespace

std::map<std::string, const Record*> best_records(const std::vector<Record>& records,
                                                  const target::Target& target, const std::string& codegen) {
  const std::string canonical = target.canonical();
  std::map<std::string, const Record*> best;
  for (const Record& record : records) {
    if (!why_not(record, canonical, codegen).empty()) continue;
    const Record*& place = best[record.task_key];
    if (place == nullptr || is_better(record, *place)) place = &record;
  }
  return best;
}

std::map<std::string, driver::TunedSchedule> choose_schedules(const std::vector<Record>& records,
                                                              const target::Target& target,
                                                              const std::string& codegen) {
  const std::string canonical = target.canonical();
  std::map<std::string, driver::TunedSchedule> result;
  for (const Record& record : records) {
    const std::string reason = why_not(record, canonical, codegen);
    if (!reason.empty()) result.try_emplace(record.task_key, driver::TunedSchedule{"", "", reason});
  }
  for (const auto& [key, record] : best_records(records, target, codegen))
    result[key] = {record->schedule, record->id(), ""};
  return result;
}

driver::LayerAlgorithms choose_algorithms(const std::vector<Record>& records, const target::Target& target,
                                          const std::string& codegen) {
  const std::string canonical = target.canonical();
  std::map<std::string, Algorithms> layers;
  for (const Record& record : records) {
    if (!why_not(record, canonical, codegen).empty()) continue;
    const bool named = !record.layer.empty();
    const std::string algorithm = named ? record.algorithm : driver::algorithm_name(0);
    if (!driver::algorithm_tile(algorithm)) continue;
    const Record*& place = layers[named ? record.layer : record.task_key][algorithm];
    if (place == nullptr || is_better(record, *place)) place = &record;
  }
  driver::LayerAlgorithms result;
  for (const auto& [layer, algorithms] : layers) {
    for (const auto& [rule, record] : algorithms) {
      if (algorithms.size() > 1) result[layer][rule] = best_instead_of(algorithms, rule);
    }
  }
  return result;
}

}  // namespace tensormill::tune
