/// What a catalog's URL says, held against what is allowed: nobody reads along, and no secret stands where
/// others can read it. Thread-safety: pure functions; the environment and the password's file are read.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensormill::storage {

/// Connection parameters by libpq's names.
using PgParameters = std::vector<std::pair<std::string, std::string>>;

/// Whether the text begins as a URL of a PostgreSQL database does.
bool is_pg_url(std::string_view text);

/// The parameters of `url` (postgresql://[USER@]HOST[:PORT]/DATABASE[?NAME=VALUE&…]), with those that libpq
/// takes from the environment. A host that is no loopback address and no folder of a socket gets
/// sslmode=verify-full. Loads libpq. Throws Error(kUsage) for what is no such URL, holds a password, or asks
/// for less than verify-full elsewhere than on this machine.
PgParameters parse_pg_url(const std::string& url);

/// Whether the host names this machine: a loopback address, "localhost" or a folder of a socket.
bool is_local_pg_host(std::string_view host);

/// The first line of `file`. Throws Error(kUsage) when it cannot be read or is empty.
std::string read_password(const std::string& file);

}  // namespace tensormill::storage
