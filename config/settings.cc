#include "config/settings.h"

#include <algorithm>
#include <charconv>

#include "config/service_variables.h"
#include "config/settings_file.h"
#include "runtime/base/error.h"

namespace tensormill::config {
namespace {

constexpr std::string_view kPrefix = "TENSORMILL_";

struct Unit {
  std::string_view suffix;
  int64_t factor;
};

constexpr Unit kByteUnits[] = {{"", 1},
                               {"B", 1},
                               {"KiB", int64_t{1} << 10},
                               {"MiB", int64_t{1} << 20},
                               {"GiB", int64_t{1} << 30},
                               {"TiB", int64_t{1} << 40}};
constexpr Unit kTimeUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

[[noreturn]] void fail(const SettingInfo& row, std::string_view value, const std::string& expected) {
  throw Error(ErrorCode::kUsage, "setting " + std::string(row.name) + " is \"" + std::string(value) +
                                     "\", expected " + expected);
}

/// A whole number with one of `units` behind it, within the row's bounds.
template <size_t kCount>
int64_t parse_scaled(const SettingInfo& row, std::string_view value, const Unit (&units)[kCount],
                     const std::string& expected) {
  int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc()) fail(row, value, expected);
  const std::string_view suffix = trim({stop, static_cast<size_t>(end - stop)});
  for (const Unit& unit : units) {
    if (suffix != unit.suffix) continue;
    int64_t scaled = 0;
    if (__builtin_mul_overflow(number, unit.factor, &scaled) || scaled < row.low || scaled > row.high) {
      fail(row, value, "a value from " + std::to_string(row.low) + " to " + std::to_string(row.high));
    }
    return scaled;
  }
  fail(row, value, expected);
}

void parse(const SettingInfo&, std::string_view value, std::string& out) { out = value; }

void parse(const SettingInfo&, std::string_view value, std::vector<std::string>& out) {
  out.clear();
  while (!value.empty()) {
    const size_t comma = value.find(',');
    const std::string_view member = trim(value.substr(0, comma));
    if (!member.empty()) out.emplace_back(member);
    if (comma == std::string_view::npos) break;
    value.remove_prefix(comma + 1);
  }
}

/// No row may be a flag at the moment.
[[maybe_unused]] void parse(const SettingInfo& row, std::string_view value, bool& out) {
  if (value == "true" || value == "1") {
    out = true;
  } else if (value == "false" || value == "0") {
    out = false;
  } else {
    fail(row, value, "true or false");
  }
}

void parse(const SettingInfo& row, std::string_view value, int& out) {
  constexpr Unit kNone[] = {{"", 1}};
  out = static_cast<int>(parse_scaled(row, value, kNone, "a whole number"));
}

void parse(const SettingInfo& row, std::string_view value, uint64_t& out) {
  out = static_cast<uint64_t>(parse_scaled(row, value, kByteUnits, "a size such as 512, 64KiB or 2GiB"));
}

void parse(const SettingInfo& row, std::string_view value, std::chrono::milliseconds& out) {
  out = std::chrono::milliseconds(parse_scaled(row, value, kTimeUnits, "a time such as 250ms, 30s or 5m"));
}

std::string print(const std::string& value) { return value; }
[[maybe_unused]] std::string print(bool value) { return value ? "true" : "false"; }
std::string print(int value) { return std::to_string(value); }
std::string print(uint64_t value) { return std::to_string(value); }
std::string print(std::chrono::milliseconds value) { return std::to_string(value.count()) + "ms"; }

std::string print(const std::vector<std::string>& value) {
  std::string text;
  for (const std::string& member : value) text += (text.empty() ? "" : ",") + member;
  return text;
}

/// Levenshtein distance, for "did you mean".
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

/// Settings of earlier versions, and why there is nothing to set any more.
struct RemovedSetting {
  std::string_view name;
  std::string_view reason;
};
constexpr RemovedSetting kRemovedSettings[] = {
    {"http.transport", "there is one HTTP listener, that of Boost.Beast"},
};

[[noreturn]] void fail_unknown(std::string_view name, std::string_view source) {
  const bool variable = name.starts_with(kPrefix);
  for (const RemovedSetting& removed : kRemovedSettings) {
    if (name != (variable ? environment_name(removed.name) : std::string(removed.name))) continue;
    throw Error(ErrorCode::kUsage, "setting \"" + std::string(name) + "\" of the " + std::string(source) +
                                       " is gone: " + std::string(removed.reason) + "; leave it out");
  }
  std::string nearest;
  for (const SettingInfo& row : all_settings()) {
    const std::string known = variable ? environment_name(row.name) : std::string(row.name);
    if (nearest.empty() || distance(known, name) < distance(nearest, name)) nearest = known;
  }
  throw Error(ErrorCode::kUsage, "setting \"" + std::string(name) + "\" of the " + std::string(source) +
                                     " is not known; the nearest is " + nearest);
}

const SettingInfo& row_named(std::string_view name, std::string_view source) {
  for (const SettingInfo& row : all_settings()) {
    if (row.name == name) return row;
  }
  fail_unknown(name, source);
}

void load_file(const SettingSources& sources, Settings& settings) {
  read_settings_file(sources.file_name, sources.file_text,
                     [&](std::string_view name, std::string_view value, const std::string& where) {
                       settings.set(name, value, where);
                     });
}

void load_environment(const SettingSources& sources, Settings& settings) {
  const ServiceVariables injected(sources.environment);
  for (const auto& [variable, value] : sources.environment) {
    bool known = false;
    for (const SettingInfo& row : all_settings()) {
      if (environment_name(row.name) != variable) continue;
      settings.set(row.name, value, "environment");
      known = true;
    }
    if (!known && !injected.has(variable, value)) fail_unknown(variable, "environment");
  }
}

}  // namespace

const std::vector<SettingInfo>& all_settings() {
  static const std::vector<SettingInfo> rows = {
#define TM_SETTING(kind, member, name, fallback, low, high, meaning) \
  {SettingKind::kind, name, fallback, low, high, meaning},
#include "config/settings.def"
#undef TM_SETTING
  };
  return rows;
}

std::string environment_name(std::string_view setting) {
  std::string name(kPrefix);
  for (const char c : setting) {
    name += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

Settings::Settings() {
  for (const SettingInfo& row : all_settings()) set(row.name, row.fallback, "defaults");
}

void Settings::set(std::string_view name, std::string_view value, std::string_view source) {
  const SettingInfo& row = row_named(name, source);
  try {
#define TM_SETTING(kind, member, setting, fallback, low, high, meaning) \
  if (name == setting) parse(row, value, member);
#include "config/settings.def"
#undef TM_SETTING
  } catch (Error& error) {
    error.add_context(source);
    throw;
  }
}

std::string Settings::get(std::string_view name) const {
#define TM_SETTING(kind, member, setting, fallback, low, high, meaning) \
  if (name == setting) return print(member);
#include "config/settings.def"
#undef TM_SETTING
  TM_CHECK(false, "no setting " + std::string(name));
}

Settings load_settings(const SettingSources& sources) {
  Settings settings;
  load_file(sources, settings);
  load_environment(sources, settings);
  for (const auto& [name, value] : sources.flags) settings.set(name, value, "command line");
  return settings;
}

std::map<std::string, std::string> tensormill_environment(const char* const* block) {
  std::map<std::string, std::string> found;
  for (; *block != nullptr; ++block) {
    const std::string_view entry = *block;
    const size_t equals = entry.find('=');
    if (!entry.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    found.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return found;
}

}  // namespace tensormill::config
