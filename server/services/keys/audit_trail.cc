#include "server/services/keys/audit_trail.h"

#include <chrono>
#include <utility>

#include "runtime/base/error.h"
#include "server/metrics/audit_log.h"
#include "server/services/forms.h"

namespace tensormill::server {

namespace {

constexpr size_t kMaxWaiting = 10'000;
/// How long entries gather: a flood of refusals costs a few transactions a second.
constexpr std::chrono::milliseconds kGather{200};

int64_t now_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

}  // namespace

AuditTrail::AuditTrail(storage::Catalog& catalog, metrics::Registry& registry, storage::AuditBounds bounds)
    : catalog_(catalog),
      registry_(registry),
      bounds_(bounds),
      writer_([this](const std::stop_token& stop) { run(stop); }) {}

AuditTrail::~AuditTrail() {
  writer_.request_stop();
  some_.notify_all();
  writer_.join();
}

void AuditTrail::answered(const metrics::AnsweredRequest& request) {
  if (!metrics::AuditLog::is_audited(request)) return;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < kMaxWaiting) {
      waiting_.push_back({0, now_ms(), request.request_id, request.caller, request.peer, request.client,
                          request.method, request.target, request.status});
      some_.notify_one();
      return;
    }
  }
  registry_.count("audit_dropped_total", {});
}

void AuditTrail::flush() {
  const std::lock_guard turn(flushing_);
  std::vector<storage::AuditRow> rows;
  {
    const std::lock_guard lock(mutex_);
    rows.swap(waiting_);
  }
  if (rows.empty()) return;
  try {
    catalog_.put_audit(rows, bounds_);
  } catch (const Error&) {
    // A disk that is full or broken is told by every request that writes; here the loss is counted.
    registry_.count("audit_dropped_total", {}, static_cast<double>(rows.size()));
  }
}

void AuditTrail::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      some_.wait(lock, stop, [this] { return !waiting_.empty(); });
      some_.wait_for(lock, stop, kGather, [this] { return waiting_.size() >= kMaxWaiting / 2; });
    }
    flush();
  }
  flush();
}

services::Page<services::AuditEntry> AuditTrail::list(const services::AuditQuery& query) {
  flush();
  storage::AuditFilter filter;
  filter.caller = query.caller;
  filter.method = query.method;
  filter.status = query.status;
  if (query.since) filter.since_ms = query.since->ms;
  if (query.until) filter.until_ms = query.until->ms;
  const auto rows = catalog_.list_audit(filter, {cursor_from_text(query.page.cursor), query.page.limit});
  services::Page<services::AuditEntry> page;
  for (const storage::AuditRow& row : rows.items) {
    page.items.push_back({services::Timestamp{row.ts_ms}, row.request_id, row.caller, row.peer, row.client,
                          row.method, row.target, row.status});
  }
  page.next_cursor = cursor_text(rows.next);
  return page;
}

}  // namespace tensormill::server
