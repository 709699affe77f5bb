/// Bytes as text of 64 letters (RFC 4648), as JSON has them. Thread-safety: pure function.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace tensormill {

/// Letters of the usual alphabet or of that for addresses, with or without `=` at the end. Throws
/// Error(`wrong`).
std::string from_base64(std::string_view text, ErrorCode wrong);

}  // namespace tensormill
