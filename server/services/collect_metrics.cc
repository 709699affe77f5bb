#include "server/services/collect_metrics.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

#include "compiler/driver/compile.h"
#include "runtime/base/error.h"
#include "server/services/workers/worker_rows.h"

namespace tensormill::server {

namespace {

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

int64_t wall_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

/// What a deployment of more or fewer workers is decided by.
void collect_jobs(metrics::Registry& registry, storage::Catalog& catalog) {
  registry.clear("jobs_queued");
  registry.clear("jobs_running");
  double queued = 0;
  for (const storage::JobCount& one : catalog.count_live_jobs()) {
    const bool waits = one.state == storage::JobState::kQueued;
    const auto count = static_cast<double>(one.count);
    queued += waits ? count : 0;
    registry.set(waits ? "jobs_queued" : "jobs_running",
                 {{"kind", one.kind}, {"place", one.is_elsewhere ? "elsewhere" : "here"}}, count);
  }
  registry.set("job_queue_depth", {}, queued);
}

void collect_workers(metrics::Registry& registry, storage::Catalog& catalog,
                     std::chrono::milliseconds lease) {
  const std::set<std::string> owners = busy_owners(catalog);
  double connected = 0, busy = 0;
  for (const storage::WorkerRow& worker : catalog.list_workers()) {
    if (worker.state != "active" || !is_worker_connected(worker, lease.count(), wall_ms())) continue;
    ++connected;
    busy += owners.contains(worker_owner(worker)) ? 1 : 0;
  }
  registry.set("workers_connected", {}, connected);
  registry.set("workers_busy", {}, busy);
}

/// A lease is renewed with each sign of life, so its age tells when that was.
double heartbeat_age_seconds(storage::Catalog& catalog, int64_t lease_ms) {
  storage::JobFilter running;
  running.state = storage::JobState::kRunning;
  int64_t oldest_ms = 0;
  for (const storage::JobRow& job : catalog.list_jobs(running, {}).items) {
    oldest_ms = std::max(oldest_ms, wall_ms() - (job.lease_until_ms - lease_ms));
  }
  return static_cast<double>(oldest_ms) / 1e3;
}

void collect_deployments(metrics::Registry& registry, services::DeploymentService& deployments) {
  registry.clear("deployment_state");
  services::PageQuery page;
  page.limit = 500;
  do {
    const auto found = deployments.list(page);
    for (const services::Deployment& deployment : found.items) {
      for (const services::DeploymentVersion& version : deployment.versions) {
        registry.set("deployment_state",
                     {{"model", deployment.name},
                      {"version", version.version},
                      {"state", std::string(services::deployment_state_name(version.state))}},
                     1);
      }
    }
    page.cursor = found.next_cursor;
  } while (!page.cursor.empty());
}

/// Sums: the listener of metrics asks for no key and must not tell the names of those that there are.
void collect_callers(metrics::Registry& registry, CallerQuota& callers) {
  const storage::CallerUse sum = callers.sum_uses();
  registry.set("caller_live_jobs", {}, static_cast<double>(sum.live_jobs));
  registry.set("caller_bytes", {}, static_cast<double>(sum.bytes));
}

}  // namespace

void collect_metrics(metrics::Registry& registry, storage::BlobStore& blobs, storage::Catalog& catalog,
                     services::DeploymentService& deployments, CallerQuota& callers,
                     const std::shared_ptr<MemoryBudget>& memory, const jobs::ChildSlots& slots,
                     const parallel::ThreadPool& pool, std::chrono::milliseconds job_lease) {
  registry.set("build_info", {{"version", driver::compiler_build()}}, 1);
  registry.on_collect([&, memory, job_lease](metrics::Registry& target) {
    target.set("children_running", {}, slots.running());
    target.set("children_waiting", {}, slots.waiting());
    target.set("children_refusals", {}, static_cast<double>(slots.refusals()));
    target.set("memory_in_flight_bytes", {}, static_cast<double>(memory->used()));
    target.set("memory_in_flight_limit_bytes", {}, static_cast<double>(memory->bytes()));
    target.set("memory_in_flight_refusals", {}, static_cast<double>(memory->refusals()));
    collect_jobs(target, catalog);
    collect_workers(target, catalog, job_lease);
    target.set("run_cores", {}, pool.cores());
    target.set("run_cores_busy", {}, std::max(0, pool.cores() - pool.free_cores()));
    target.set("job_heartbeat_age_seconds", {}, heartbeat_age_seconds(catalog, job_lease.count()));
    const storage::BlobUsage stored = blobs.usage();
    target.set("store_bytes", {}, static_cast<double>(stored.stored_bytes));
    target.set("store_objects", {}, static_cast<double>(stored.blobs));
    target.set("process_resident_memory_bytes", {}, resident_bytes());
    try {
      collect_deployments(target, deployments);
    } catch (const Error& error) {
      // A replica that has just begun does not know them yet; what it knows of itself is told.
      if (error.code() != ErrorCode::kUnavailable) throw;
    }
    collect_callers(target, callers);
  });
}

}  // namespace tensormill::server
