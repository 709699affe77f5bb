/// Rows of workers elsewhere, and who owns what they do. Thread-safety: pure functions of the catalog.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "storage/catalog/catalog.h"

namespace tensormill::server {

/// The owner of the leases of a worker.
std::string worker_owner(const storage::WorkerRow& worker);
/// Whether it was heard within the time in which one that is there is heard: it asks again after 30 s at
/// most, and beats more often.
bool is_worker_connected(const storage::WorkerRow& worker, int64_t lease_ms, int64_t now_ms);
/// The owners of all jobs that run.
std::set<std::string> busy_owners(storage::Catalog& catalog);

}  // namespace tensormill::server
