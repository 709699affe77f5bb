#include "api/http/time.h"

#include <algorithm>
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

/// `count` digits at the front of `text`, which are removed; nothing when there are fewer.
std::optional<int> take_number(std::string_view& text, size_t count) {
  if (text.size() < count) return std::nullopt;
  int number = 0;
  for (const char c : text.substr(0, count)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  text.remove_prefix(count);
  return number;
}

bool take(std::string_view& text, char wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

/// Milliseconds of ".123456"; 0 without a fraction; nothing for a "." without digits.
std::optional<int64_t> take_fraction(std::string_view& text) {
  if (!take(text, '.')) return 0;
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 9) return std::nullopt;
  std::string padded(text.substr(0, digits));
  padded.resize(3, '0');
  text.remove_prefix(digits);
  std::string_view first = padded;
  return take_number(first, 3);
}

/// Seconds of "Z" or "+02:00".
std::optional<int64_t> take_offset(std::string_view& text) {
  if (take(text, 'Z') || take(text, 'z')) return 0;
  const bool is_west = text.starts_with('-');
  if (!take(text, '+') && !take(text, '-')) return std::nullopt;
  const auto hours = take_number(text, 2);
  if (!hours || !take(text, ':')) return std::nullopt;
  const auto minutes = take_number(text, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  return (*hours * 3600 + *minutes * 60) * (is_west ? -1 : 1);
}

}  // namespace

std::optional<int64_t> parse_timestamp(std::string_view text) {
  std::array<int, 6> parts{};
  constexpr std::array<size_t, 6> kDigits = {4, 2, 2, 2, 2, 2};
  constexpr std::array<char, 6> kBehind = {'-', '-', 'T', ':', ':', '\0'};
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto number = take_number(text, kDigits[i]);
    if (!number || (kBehind[i] != '\0' && !take(text, kBehind[i]))) return std::nullopt;
    parts[i] = *number;
  }
  const auto ms = take_fraction(text);
  if (!ms) return std::nullopt;
  const auto offset = take_offset(text);
  if (!offset || !text.empty()) return std::nullopt;
  std::tm time{};
  time.tm_year = parts[0] - 1900;
  time.tm_mon = parts[1] - 1;
  time.tm_mday = parts[2];
  time.tm_hour = parts[3];
  time.tm_min = parts[4];
  time.tm_sec = parts[5];
  const std::time_t seconds = ::timegm(&time);
  // What timegm had to carry over was no date: the 30th of February, 25:00.
  const bool is_date = time.tm_mon == parts[1] - 1 && time.tm_mday == parts[2] && time.tm_hour == parts[3] &&
                       time.tm_min == parts[4] && time.tm_sec == parts[5];
  if (!is_date) return std::nullopt;
  return (static_cast<int64_t>(seconds) - *offset) * 1000 + *ms;
}

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
