/// Settings in a file: TOML, read and written. Only settings_file.cc sees the TOML library.
/// Thread-safety: pure functions over their arguments.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "config/settings.h"

namespace tensormill::config {

/// A larger file is refused before it is read. Keys such as a.a.a.… make tables in tables, which the TOML
/// library walks and frees recursively; so many as fit into this need less than half of a main thread's usual
/// stack. A file with all settings and what each means takes half of it.
inline constexpr size_t kMaxFileBytes = size_t{16} << 10;

/// Takes one setting of a file. `value` is text as Settings::set parses it; `where` names file and line.
using TakeSetting =
    std::function<void(std::string_view name, std::string_view value, const std::string& where)>;

/// Calls `take` for each setting of the TOML `text`, in the order of the file. What has no row in
/// settings.def is given to `take` as well, with the names of its tables and a dot before it and without a
/// value. `file` is for messages. Throws Error(kUsage) with file and line for text that is too long or no
/// TOML, for a setting that is there twice, and for a value of a type that the setting's kind does not have.
void read_settings_file(std::string_view file, std::string_view text, const TakeSetting& take);

/// The line of the file that sets `row` to what `settings` has, without an end of line.
std::string settings_file_line(const SettingInfo& row, const Settings& settings);

}  // namespace tensormill::config
