/// Tuning records in the catalog, and which of them a compile takes. A record's key is the kernel's, the
/// target, the kind of CPU, the number of threads and the compiler that made the code.
/// Thread-safety: all methods from many threads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/services/tuning_service.h"
#include "compiler/driver/compile.h"
#include "compiler/target/target.h"
#include "compiler/tune/records/record.h"
#include "server/services/store/store_quota.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

/// What records say of kernels, by the kernel's key, and of layers that have several algorithms.
struct Tuned {
  std::map<std::string, driver::TunedSchedule> schedules;
  driver::LayerAlgorithms algorithms;
};

/// What records were measured on.
struct TuningPlace {
  std::string cpu;  ///< tune::Record::cpu
  int threads = 1;
};

class TuningRecords final : public services::TuningService {
public:
  /// `quota`: for what is imported, with what the catalog has; null: no bound.
  TuningRecords(storage::Catalog& catalog, const target::Target& host, StoreQuota* quota = nullptr);

  services::TuningImport import_records(std::string_view text, bool foreign) override;
  std::shared_ptr<http::ResponseStream> list(const services::TuningQuery& query) override;
  std::shared_ptr<http::ResponseStream> get(const std::string& id) override;
  void remove(const std::string& id) override;

  /// The fingerprint of this machine, which measures.
  const std::string& cpu() const { return cpu_; }
  /// The threads that kernels for `target` are measured with unless a request says otherwise.
  int default_threads(const target::Target& target) const;

  /// What the best records measured here, or at `place` ("auto"), or those of a set (its id), say of
  /// `kernels`; of all kernels when that is empty. Throws Error(kNotFound) for a set that is not there.
  Tuned choose(const std::string& from, const target::Target& target, const std::vector<std::string>& kernels,
               const TuningPlace* place = nullptr);
  /// The schedule behind a record's id (tune::Record::id); with a reason and no steps where it is gone.
  driver::TunedSchedule find(const std::string& kernel, const std::string& record,
                             const target::Target& target);

private:
  storage::Catalog& catalog_;
  StoreQuota* const quota_;
  std::string cpu_;
  int cores_;
};

/// The row of a record; `job` is the one that measured it, "" for an imported one.
storage::TuningRecordRow row_of(const tune::Record& record, const std::string& line, const std::string& job);
/// The id of a set of these lines.
Digest set_id(const std::vector<std::string>& lines);
/// All that pass the filter, page by page.
std::vector<storage::TuningRecordRow> all_rows(storage::Catalog& catalog,
                                               const storage::TuningFilter& filter);

}  // namespace tensormill::server
