/// Gauges that are looked up when the metrics are read: queue, store, deployments, the process.
/// Thread-safety: pure function; what it registers is called from many threads.
#pragma once

#include <chrono>
#include <memory>

#include "api/services/services.h"
#include "runtime/base/memory_budget.h"
#include "runtime/parallel/thread_pool.h"
#include "server/jobs/child_slots.h"
#include "server/metrics/registry.h"
#include "server/services/keys/caller_quota.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

/// All that is named must outlive the last Registry::text().
void collect_metrics(metrics::Registry& registry, storage::BlobStore& blobs, storage::Catalog& catalog,
                     services::DeploymentService& deployments, CallerQuota& callers,
                     const std::shared_ptr<MemoryBudget>& memory, const jobs::ChildSlots& slots,
                     const parallel::ThreadPool& pool, std::chrono::milliseconds job_lease);

}  // namespace tensormill::server
