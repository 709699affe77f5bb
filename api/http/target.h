/// Request targets: path and query, percent-decoded.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "api/http/message.h"

namespace tensormill::http {

/// Fills `segments` and `query` of `request` from `target`, which is in origin form ("/a%20b/c?d=e+f"), "*",
/// or in absolute form, whose authority then replaces the Host field. "/" has no segments, "/a/" has "a" and
/// "". In the query "+" is a space. Throws Error(kInvalidRequest) for anything else: bad escapes, control
/// characters, bytes that are not UTF-8, a fragment.
void parse_target(std::string_view target, Request& request);

/// Decodes %XX; throws Error(kInvalidRequest) as above.
std::string percent_decode(std::string_view text, bool plus_is_space);

}  // namespace tensormill::http
