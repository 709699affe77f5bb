#include "storage/replica/replica_lease.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "storage/catalog/uuid7.h"

namespace tensormill::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

ReplicaRow row_of(const std::string& name, const std::string& address) {
  ReplicaRow row;
  row.id = make_uuid7(0);
  row.name = name;
  row.address = address;
  return row;
}

}  // namespace

ReplicaLease::ReplicaLease(SharedCatalog& catalog, const std::string& name, const std::string& address,
                           milliseconds lease)
    : catalog_(catalog), row_(row_of(name, address)), lease_(lease) {
  const auto now = steady_clock::now();
  catalog_.begin_replica(row_, lease_.count());
  sure_until_ = now + lease_ / 2;
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

ReplicaLease::~ReplicaLease() {
  thread_.request_stop();
  thread_.join();
  try {
    catalog_.end_replica(row_.id);
  } catch (const Error&) {
    // The catalog is away: the lease runs out by itself.
  }
}

bool ReplicaLease::is_sure() {
  const std::lock_guard lock(mutex_);
  return steady_clock::now() < sure_until_;
}

bool ReplicaLease::renew() {
  // By our clock the lease began before the catalog heard of it, so it is over here first.
  const auto now = steady_clock::now();
  try {
    if (!catalog_.renew_replica(row_.id, lease_.count())) {
      const std::vector<ReplicaRow> others = catalog_.list_replicas();
      const bool taken = std::any_of(others.begin(), others.end(), [&](const ReplicaRow& other) {
        return other.name == row_.name && other.is_live;
      });
      // Another process has a copy of our folder: there is room for one of the two.
      if (taken) return true;
      catalog_.begin_replica(row_, lease_.count());
    }
  } catch (const Error&) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  sure_until_ = now + lease_ / 2;
  return true;
}

void ReplicaLease::work(const std::stop_token& stop) {
  bool reached = true;
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      never_.wait_for(lock, stop, reached ? lease_ / 4 : lease_ / 16, [] { return false; });
    }
    if (!stop.stop_requested()) reached = renew();
  }
}

}  // namespace tensormill::storage
