/// Backups of a store whose catalog is a PostgreSQL database and whose blobs are in S3, and back.
/// Thread-safety: pure functions; one copy into a folder at a time.
#pragma once

#include <string>

#include "config/settings.h"
#include "storage/backup/store_copy.h"
#include "storage/env/env.h"

namespace tensormill::server {

/// Copies the store that the settings name into the folder `to`, as storage::copy_store does, while any
/// number of servers serve from it. The process is one of the store's replicas meanwhile, and has a hold: no
/// collection takes what is still to be copied. Throws what copying throws, Error(kUsage) where the settings
/// name no such store.
storage::StoreCopy back_up_shared(const config::Settings& settings, storage::Env& env, const std::string& to);

/// Makes the store that the settings name, in an empty database and an empty prefix, of the one in `folder`,
/// whose catalog remains as catalog.db.migrated. No server may have either open. The first one after it reads
/// the bucket's list.
void move_to_shared(const config::Settings& settings, storage::Env& env, const std::string& folder);

}  // namespace tensormill::server
