/// A PostgreSQL of the test program's own (tests/tools/postgres_server.py). It starts when the first test
/// needs it and goes with the program.
#pragma once

#include <functional>
#include <string>

#include "storage/postgresql/pg_connection.h"

namespace tensormill::storage {

/// The URL of a schema in it that nothing is in yet.
std::string fresh_postgres_schema();
/// Options for it, as tests have them.
PgOptions postgres_options(const std::string& url, std::function<int64_t()> now_ms = nullptr);

}  // namespace tensormill::storage
