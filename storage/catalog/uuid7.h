/// UUID version 7 (RFC 9562): 48 bits of milliseconds, then random bits; ids sort by time of creation.
/// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensormill::storage {

/// Lower-case text of 36 characters. Random bits come from the system.
std::string make_uuid7(int64_t unix_ms);
/// True for the text of a UUIDv7.
bool is_uuid7(std::string_view text);

}  // namespace tensormill::storage
