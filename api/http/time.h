/// Texts of points in time.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tensormill::http {

/// RFC 3339 in UTC with milliseconds: "2024-02-29T23:59:59.007Z".
std::string format_timestamp(int64_t ms_since_epoch);
/// Milliseconds since 1970 of "2024-02-29T23:59:59Z", with or without a fraction of up to nine digits (of
/// which three count) and with "Z" or an offset such as "+02:00"; nothing for what is no RFC 3339 time.
std::optional<int64_t> parse_timestamp(std::string_view text);
/// The fixed form of RFC 9110: "Thu, 29 Feb 2024 23:59:59 GMT".
std::string format_http_date(int64_t seconds_since_epoch);

}  // namespace tensormill::http
