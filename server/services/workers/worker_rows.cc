#include "server/services/workers/worker_rows.h"

#include <algorithm>

namespace tensormill::server {

namespace {

constexpr int64_t kLongestSilenceMs = 30'000;

}  // namespace

std::string worker_owner(const storage::WorkerRow& worker) {
  return std::string(storage::kRemoteOwner) + worker.caller + "/" + worker.name;
}

bool is_worker_connected(const storage::WorkerRow& worker, int64_t lease_ms, int64_t now_ms) {
  return now_ms - worker.seen_ms < 2 * std::max(lease_ms, kLongestSilenceMs);
}

std::set<std::string> busy_owners(storage::Catalog& catalog) {
  storage::JobFilter filter;
  filter.state = storage::JobState::kRunning;
  std::set<std::string> owners;
  storage::PageRequest page{0, 500};
  do {
    const auto found = catalog.list_jobs(filter, page);
    for (const storage::JobRow& job : found.items) owners.insert(job.owner);
    page.cursor = found.next;
  } while (page.cursor != 0);
  return owners;
}

}  // namespace tensormill::server
