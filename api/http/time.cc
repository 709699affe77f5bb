#include "api/http/time.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace tensormill::http {
namespace {

std::tm utc(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return parts;
}

}  // namespace

std::string format_timestamp(int64_t ms_since_epoch) {
  int64_t seconds = ms_since_epoch / 1000;
  int64_t ms = ms_since_epoch % 1000;
  if (ms < 0) {
    ms += 1000;
    --seconds;
  }
  const std::tm parts = utc(seconds);
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<int>(ms));
  return text.data();
}

std::string format_http_date(int64_t seconds_since_epoch) {
  // Not strftime: the names of days and months must not follow the locale.
  constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::tm parts = utc(seconds_since_epoch);
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[static_cast<size_t>(parts.tm_wday)], parts.tm_mday,
                kMonths[static_cast<size_t>(parts.tm_mon)], parts.tm_year + 1900, parts.tm_hour, parts.tm_min,
                parts.tm_sec);
  return text.data();
}

}  // namespace tensormill::http
