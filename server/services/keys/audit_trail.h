/// The audit log in the catalog, which /v1/audit shows. Entries are written in batches by a thread of their
/// own, so that no answer waits for the disk: what was answered within the last moment before a power cut may
/// be missing here, but not in the file of the setting audit_log. Thread-safety: all methods from many
/// threads.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "api/services/audit_service.h"
#include "server/metrics/registry.h"
#include "server/metrics/request_log.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

class AuditTrail final : public services::AuditService {
public:
  AuditTrail(storage::Catalog& catalog, metrics::Registry& registry, storage::AuditBounds bounds);
  /// Writes what is left.
  ~AuditTrail() override;
  AuditTrail(const AuditTrail&) = delete;
  AuditTrail& operator=(const AuditTrail&) = delete;
  /// Keeps what AuditLog::is_audited says. Waits for nothing: past a bound entries are dropped; a metric has
  /// their number.
  void answered(const metrics::AnsweredRequest& request);
  services::Page<services::AuditEntry> list(const services::AuditQuery& query) override;

private:
  void flush();
  void run(const std::stop_token& stop);

  storage::Catalog& catalog_;
  metrics::Registry& registry_;
  const storage::AuditBounds bounds_;
  std::mutex mutex_;
  std::condition_variable_any some_;
  std::vector<storage::AuditRow> waiting_;
  std::mutex flushing_;  ///< rows are written in the order in which they came
  std::jthread writer_;
};

}  // namespace tensormill::server
