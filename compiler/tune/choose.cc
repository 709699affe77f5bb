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

}  // namespace

std::map<std::string, driver::TunedSchedule> choose_schedules(const std::vector<Record>& records,
                                                              const target::Target& target,
                                                              const std::string& codegen) {
  const std::string canonical = target.canonical();
  std::map<std::string, const Record*> best;
  std::map<std::string, driver::TunedSchedule> result;
  for (const Record& record : records) {
    const std::string reason = why_not(record, canonical, codegen);
    if (!reason.empty()) {
      result.try_emplace(record.task_key, driver::TunedSchedule{"", "", reason});
      continue;
    }
    const Record*& place = best[record.task_key];
    if (place == nullptr || is_better(record, *place)) place = &record;
  }
  for (const auto& [key, record] : best) result[key] = {record->schedule, record->id(), ""};
  return result;
}

}  // namespace tensormill::tune
