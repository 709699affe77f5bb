/// Moves the catalog of a store between a file in its folder and a PostgreSQL database. Thread-safety: no
/// server may have either open meanwhile, unless it is said; the folder is locked.
#pragma once

#include <string>

#include "storage/env/env.h"
#include "storage/postgresql/copy_catalog.h"
#include "storage/postgresql/open_catalog.h"

namespace tensormill::storage {

/// From the folder's file into the database, in which there must be no catalog but one that an earlier call
/// has begun. The file stays as catalog.db.migrated, which nobody opens. Throws as copy_catalog;
/// Error(kNotFound) without a file.
CatalogCopy move_to_database(Env& env, const std::string& folder, const CatalogPlace& place);
/// From the database into the folder's file. The database stays as it is. Throws as copy_catalog;
/// Error(kConflict) where the folder has a file or belongs to another database.
CatalogCopy move_to_file(Env& env, const std::string& folder, const CatalogPlace& place);
/// From the database, as it is at one moment and which servers may have open, into a new file, whatever stood
/// there. Throws as copy_catalog.
CatalogCopy copy_to_file(Env& env, const std::string& path, const CatalogPlace& place);

}  // namespace tensormill::storage
