/// What a process is among those that serve from one catalog (PostgreSQL) and one bucket (S3): replicas, of
/// which any answers any request. Its lease, its part of the shared index of blobs, its name. Thread-safety:
/// made and destroyed by one thread; the methods from many.
#pragma once

#include <memory>
#include <string>

#include "config/settings.h"
#include "server/services/store/blob_place.h"
#include "storage/env/env.h"
#include "storage/postgresql/open_catalog.h"
#include "storage/replica/replica_lease.h"
#include "storage/upload/upload_store.h"

namespace tensormill::server {

class Replica {
public:
  /// Null where the settings make a lone process: its catalog or its blobs are on this machine.
  static std::unique_ptr<Replica> make(const config::Settings& settings, storage::Env& env,
                                       const std::string& root, storage::StoreCatalog& opened);
  Replica(storage::Catalog& catalog, std::string shared_id, const std::string& name,
          const std::string& address, std::chrono::milliseconds lease);

  /// Of this run of the process.
  const std::string& id() const { return lease_.id(); }
  /// The same for all runs from one folder.
  const std::string& name() const { return lease_.name(); }
  SharedPlace place();

private:
  storage::Catalog& catalog_;
  const std::string shared_id_;
  storage::ReplicaLease lease_;
};

/// The id of the store that `catalog` and its bucket are: `shared_id`, or what the first process that served
/// from both knew its bucket by.
std::string shared_store_id(storage::Catalog& catalog, const std::string& shared_id,
                            const std::string& known);
/// From now on the bucket of the store that `catalog` is, or is moved to, is known by this id, whatever one
/// that it is a copy of is known by.
void put_store_id(storage::Catalog& catalog, const std::string& id);

}  // namespace tensormill::server
