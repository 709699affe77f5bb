/// Texts of points in time.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace tensormill::http {

/// RFC 3339 in UTC with milliseconds: "2024-02-29T23:59:59.007Z".
std::string format_timestamp(int64_t ms_since_epoch);
/// The fixed form of RFC 9110: "Thu, 29 Feb 2024 23:59:59 GMT".
std::string format_http_date(int64_t seconds_since_epoch);

}  // namespace tensormill::http
