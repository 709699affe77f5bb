/// The catalog's tables in PostgreSQL, as numbered steps. A step that has shipped is never edited: a change
/// is a new one.
///
/// Processes of different versions may have one catalog open. So a change is made in two releases: one that
/// expands (what it adds, older programs may leave alone) and, later, one that contracts (removes what
/// they used). Each step says the oldest program that can work with the tables after it; a program is known
/// by the number of steps that it knows. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "storage/postgresql/pg_connection.h"

namespace tensormill::storage {

struct PgMigration {
  std::string_view sql;
  int64_t oldest_program = 1;
};

std::span<const PgMigration> pg_migrations();

/// Brings the tables to the newest version that the program knows, one process at a time, all steps or none.
/// Throws Error(kNotSupported), naming both versions, where a newer program has left tables that this one
/// cannot work with.
void migrate_pg(PgConnection& connection, std::span<const PgMigration> migrations);

}  // namespace tensormill::storage
