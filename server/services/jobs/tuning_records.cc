#include "server/services/jobs/tuning_records.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/target/fingerprint.h"
#include "compiler/tune/choose.h"
#include "runtime/base/error.h"
#include "server/services/store/model_service.h"

namespace tensormill::server {

namespace {

constexpr int kPageRows = 500;

/// The records that pass a filter, a page at a time, so that no answer is held whole.
class RecordLines final : public http::ResponseStream {
public:
  RecordLines(storage::Catalog& catalog, storage::TuningFilter filter)
      : catalog_(catalog), filter_(std::move(filter)) {}
  bool next(std::string& piece) override {
    if (ended_) return false;
    const auto page = catalog_.list_tuning_records(filter_, {after_, kPageRows});
    for (const storage::TuningRecordRow& row : page.items) piece += row.line + "\n";
    after_ = page.next;
    ended_ = page.next == 0;
    return true;
  }

private:
  storage::Catalog& catalog_;
  storage::TuningFilter filter_;
  int64_t after_ = 0;
  bool ended_ = false;
};

std::vector<tune::Record> parsed(const std::vector<storage::TuningRecordRow>& rows) {
  std::vector<tune::Record> records;
  for (const storage::TuningRecordRow& row : rows) records.push_back(tune::record_from_line(row.line));
  return records;
}

Digest require_set(storage::Catalog& catalog, const std::string& id) {
  const auto digest = Digest::parse(id);
  if (!digest || !catalog.find_tuning_set(*digest)) {
    throw Error(ErrorCode::kNotFound, "there are no records \"" + id + "\"");
  }
  return *digest;
}

}  // namespace

storage::TuningRecordRow row_of(const tune::Record& record, const std::string& line, const std::string& job) {
  storage::TuningRecordRow row;
  row.id = Digest::of(line);
  row.task = record.task_key;
  row.target = record.target;
  row.cpu = record.cpu;
  row.threads = record.threads;
  row.generator = record.codegen;
  row.imported = job.empty();
  row.job = job;
  const double seconds = record.median_seconds();
  if (std::isfinite(seconds)) row.time_ns = static_cast<int64_t>(std::min(seconds * 1e9, 1e18)) + 1;
  row.final = record.final;
  row.line = line;
  return row;
}

Digest set_id(const std::vector<std::string>& lines) {
  Hasher hasher;
  for (const std::string& line : lines) hasher.update_field(line);
  return hasher.finish();
}

std::vector<storage::TuningRecordRow> all_rows(storage::Catalog& catalog,
                                               const storage::TuningFilter& filter) {
  std::vector<storage::TuningRecordRow> rows;
  int64_t after = 0;
  do {
    auto page = catalog.list_tuning_records(filter, {after, kPageRows});
    std::move(page.items.begin(), page.items.end(), std::back_inserter(rows));
    after = page.next;
  } while (after != 0);
  return rows;
}

TuningRecords::TuningRecords(storage::Catalog& catalog, const target::Target& host, StoreQuota* quota)
    : catalog_(catalog),
      quota_(quota),
      cpu_(target::cpu_fingerprint(host)),
      cores_(std::max(1, host.facts.num_cores)) {}

int TuningRecords::default_threads(const target::Target& target) const {
  return std::clamp(target.facts.num_cores, 1, cores_);
}

services::TuningImport TuningRecords::import_records(std::string_view text, bool foreign) {
  // They are rows, which no writer of blobs counts.
  if (quota_ != nullptr && quota_->bytes() != 0) quota_->check(catalog_.database_bytes() + text.size());
  std::set<std::string> lines;
  std::vector<storage::TuningRecordRow> rows;
  std::set<std::string> tasks;
  tune::each_record(text, [&](int, std::string_view, const tune::Record& record) {
    if (!foreign && record.cpu != cpu_) {
      throw Error(ErrorCode::kInvalidRecords, "it was measured on another kind of CPU, \"" + record.cpu +
                                                  "\", and this is \"" + cpu_ + "\"; foreign=1 takes it");
    }
    // The canonical line, so that spaces and the order of members make no other record.
    const std::string line = tune::to_line(record);
    if (!lines.insert(line).second) return;
    rows.push_back(row_of(record, line, ""));
    tasks.insert(record.task_key);
  });
  if (rows.empty()) throw Error(ErrorCode::kInvalidRecords, "there are no records");
  storage::TuningSetRow set;
  set.id = set_id({lines.begin(), lines.end()});
  for (const storage::TuningRecordRow& row : rows) set.records.push_back(row.id);
  services::TuningImport done;
  done.id = set.id;
  done.records = static_cast<int64_t>(rows.size());
  done.tasks = static_cast<int64_t>(tasks.size());
  done.added = catalog_.put_tuning_records(rows);
  // With them once more: another set of theirs may be removed meanwhile.
  done.created = catalog_.put_tuning_set(set, rows);
  return done;
}

std::shared_ptr<http::ResponseStream> TuningRecords::list(const services::TuningQuery& query) {
  storage::TuningFilter filter;
  filter.target = query.target;
  if (!query.model.empty()) {
    const auto model = find_model(catalog_, query.model);
    // No set has this subject.
    filter.subject = model ? model->id.text() : "unknown model";
  }
  return std::make_shared<RecordLines>(catalog_, std::move(filter));
}

std::shared_ptr<http::ResponseStream> TuningRecords::get(const std::string& id) {
  storage::TuningFilter filter;
  filter.set = require_set(catalog_, id);
  return std::make_shared<RecordLines>(catalog_, std::move(filter));
}

void TuningRecords::remove(const std::string& id) { catalog_.remove_tuning_set(require_set(catalog_, id)); }

Tuned TuningRecords::choose(const std::string& from, const target::Target& target,
                            const std::vector<std::string>& kernels, const TuningPlace* place) {
  const std::string compiler = driver::code_generator();
  storage::TuningFilter filter;
  filter.tasks = kernels;
  filter.target = target.canonical();
  filter.generator = compiler;
  const int threads = place != nullptr ? place->threads : default_threads(target);
  Tuned tuned;
  if (from == "auto") {
    filter.cpu = place != nullptr ? place->cpu : cpu_;
    filter.with_imported = false;
  } else {
    // What cannot be used has its reason from one of its records.
    storage::TuningFilter all;
    all.tasks = kernels;
    all.set = filter.set = require_set(catalog_, from);
    tuned.schedules =
        tune::choose_schedules(parsed(catalog_.best_tuning_records(all, threads)), target, compiler);
  }
  const std::vector<tune::Record> best = parsed(catalog_.best_tuning_records(filter, threads));
  for (auto& [kernel, schedule] : tune::choose_schedules(best, target, compiler))
    tuned.schedules[kernel] = std::move(schedule);
  tuned.algorithms = tune::choose_algorithms(best, target, compiler);
  return tuned;
}

driver::TunedSchedule TuningRecords::find(const std::string& kernel, const std::string& record,
                                          const target::Target& target) {
  storage::TuningFilter filter;
  filter.tasks = {kernel};
  filter.target = target.canonical();
  filter.generator = driver::code_generator();
  // Nearly always the best one is meant.
  auto rows = catalog_.best_tuning_records(filter, default_threads(target));
  for (storage::TuningRecordRow& row : all_rows(catalog_, filter)) rows.push_back(std::move(row));
  for (const storage::TuningRecordRow& row : rows) {
    const tune::Record found = tune::record_from_line(row.line);
    if (found.id() == record) return {found.schedule, record, ""};
  }
  return {"", "", "its record was removed"};
}

}  // namespace tensormill::server
