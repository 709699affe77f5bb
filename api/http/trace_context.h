/// What a request says of the trace that it is part of (W3C Trace Context, level 1). Thread-safety: pure
/// functions.
#pragma once

#include <string>
#include <string_view>

#include "api/http/headers.h"

namespace tensormill::http {

/// The trace-id of a `traceparent` field (W3C Trace Context, level 1, section 3.2); "" for one that is
/// malformed or all zeros.
std::string trace_id_of(std::string_view traceparent);
/// That of a request whose trace is recorded, so that somebody can look at it; "" for others.
std::string recorded_trace_of(const Headers& headers);

}  // namespace tensormill::http
