/// The server's settings: settings.def as a struct, filled from flags, environment and file, in this order of
/// precedence. The environment is passed in, never read here.
/// Thread-safety: values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensormill::config {

enum class SettingKind { kText, kList, kFlag, kWhole, kBytes, kMillis };

/// One row of settings.def.
struct SettingInfo {
  SettingKind kind;
  std::string_view name;      ///< "http.max_connections"
  std::string_view fallback;  ///< default, as the environment would have it
  int64_t low;
  int64_t high;
  std::string_view meaning;
};

const std::vector<SettingInfo>& all_settings();
/// "TENSORMILL_HTTP_MAX_CONNECTIONS"
std::string environment_name(std::string_view setting);

template <SettingKind kKind>
struct SettingType;
template <>
struct SettingType<SettingKind::kText> {
  using type = std::string;
};
template <>
struct SettingType<SettingKind::kList> {
  using type = std::vector<std::string>;
};
template <>
struct SettingType<SettingKind::kFlag> {
  using type = bool;
};
template <>
struct SettingType<SettingKind::kWhole> {
  using type = int;
};
template <>
struct SettingType<SettingKind::kBytes> {
  using type = uint64_t;
};
template <>
struct SettingType<SettingKind::kMillis> {
  using type = std::chrono::milliseconds;
};

/// Values; default-constructed: the defaults.
struct Settings {
  Settings();
#define TM_SETTING(kind, member, name, fallback, low, high, meaning) \
  SettingType<SettingKind::kind>::type member{};
#include "config/settings.def"
#undef TM_SETTING

  /// Parses `value` as the setting `name` and stores it. Throws Error(kUsage) for an unknown name (with the
  /// nearest known one) and for a value that does not fit; `source` says where it came from.
  void set(std::string_view name, std::string_view value, std::string_view source);
  /// The value as the environment would have it. TM_CHECKs the name.
  std::string get(std::string_view name) const;
};

struct SettingSources {
  std::vector<std::pair<std::string, std::string>> flags;  ///< by setting name: "listen", "http.workers"
  std::map<std::string, std::string> environment;          ///< all TENSORMILL_… variables
  std::string file_name;                                   ///< for messages; "" when there is no file
  std::string file_text;                                   ///< TOML; at most kMaxFileBytes of settings_file.h
};

/// Throws Error(kUsage) for anything unknown, malformed, or twice in the file.
Settings load_settings(const SettingSources& sources);

/// The TENSORMILL_… entries of an environment block such as `environ`.
std::map<std::string, std::string> tensormill_environment(const char* const* block);

}  // namespace tensormill::config
