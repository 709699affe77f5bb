/// The catalog's schema as numbered forward steps. A step that has shipped is never edited: a change is a new
/// one. Thread-safety: pure functions.
#pragma once

#include <span>
#include <string_view>

#include "storage/catalog/sqlite_db.h"

namespace tensormill::storage {

/// SQL of each step; the i-th (from 0) leads from version i to i + 1.
std::span<const std::string_view> catalog_migrations();
/// Brings the database to the newest version, all steps in one transaction. Throws Error(kNotSupported) when
/// the database is newer than this program or not a catalog.
void migrate(SqliteDb& db);

}  // namespace tensormill::storage
