#include "config/settings_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill::config {
namespace {

struct FileEntry {
  std::string name;
  const toml::node* node;
};

const SettingInfo* row_of(std::string_view name) {
  for (const SettingInfo& row : all_settings()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

/// Whether settings have names that begin with that of the table.
bool is_section(std::string_view table) {
  const std::string prefix = std::string(table) + ".";
  const std::vector<SettingInfo>& rows = all_settings();
  return std::any_of(rows.begin(), rows.end(),
                     [&](const SettingInfo& row) { return row.name.starts_with(prefix); });
}

/// Goes down only where settings are, however deep the file's tables are.
void collect_entries(const toml::table& table, const std::string& prefix, std::vector<FileEntry>& entries) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    const toml::table* inner = node.as_table();
    if (inner != nullptr && is_section(name)) {
      collect_entries(*inner, name + ".", entries);
    } else {
      entries.push_back({name, &node});
    }
  }
}

std::string_view type_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "a truth value";
    default:
      return "a date or a time of day";
  }
}

std::string_view type_of(SettingKind kind) {
  switch (kind) {
    case SettingKind::kText:
      return "text in quotes";
    case SettingKind::kList:
      return "an array of texts, or text with commas";
    case SettingKind::kFlag:
      return "true or false";
    case SettingKind::kWhole:
      return "a whole number";
    case SettingKind::kBytes:
      return "a size such as 512, \"64KiB\" or \"2GiB\"";
    case SettingKind::kMillis:
      return "a time such as \"250ms\", \"30s\" or \"5m\"";
  }
  return "";
}

/// Text of one line: what is printed and logged stays one, and a path ends where it seems to.
const std::string& plain_text(const toml::value<std::string>& text) {
  const std::string& value = text.get();
  const bool plain = std::all_of(value.begin(), value.end(),
                                 [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
  if (!plain) throw Error(ErrorCode::kUsage, "has a control character");
  return value;
}

/// The members with commas between them, which is a list as the environment has it.
std::string joined_members(const toml::array& members) {
  std::string text;
  for (const toml::node& member : members) {
    const toml::value<std::string>* value = member.as_string();
    if (value == nullptr) {
      throw Error(ErrorCode::kUsage,
                  "has a member that is " + std::string(type_of(member)) + ", expected text");
    }
    const std::string& said = plain_text(*value);
    if (said.find_first_not_of(' ') == std::string::npos)
      throw Error(ErrorCode::kUsage, "has an empty member");
    if (said.find(',') != std::string::npos) {
      throw Error(ErrorCode::kUsage, "has the member \"" + said + "\" with a comma, which parts members");
    }
    text += (text.empty() ? "" : ",") + said;
  }
  return text;
}

std::string value_text(SettingKind kind, const toml::node& node) {
  if (const auto* text = node.as_string()) return plain_text(*text);
  const bool number = kind == SettingKind::kWhole || kind == SettingKind::kBytes;
  if (const auto* whole = node.as_integer(); whole != nullptr && number) return std::to_string(whole->get());
  if (const auto* flag = node.as_boolean(); flag != nullptr && kind == SettingKind::kFlag) {
    return flag->get() ? "true" : "false";
  }
  if (const auto* members = node.as_array(); members != nullptr && kind == SettingKind::kList) {
    return joined_members(*members);
  }
  throw Error(ErrorCode::kUsage,
              "is " + std::string(type_of(node)) + ", expected " + std::string(type_of(kind)));
}

toml::table parse_toml(std::string_view file, std::string_view text) {
  if (text.size() > kMaxFileBytes) {
    throw Error(ErrorCode::kUsage, "file " + std::string(file) + " has more than " +
                                       std::to_string(kMaxFileBytes) +
                                       " bytes, the most of a file of settings");
  }
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw Error(ErrorCode::kUsage, "file " + std::string(file) + " line " +
                                       std::to_string(error.source().begin.line) + " column " +
                                       std::to_string(error.source().begin.column) +
                                       " is not TOML, in which text is in "
                                       "quotes (name = \"text\"): " +
                                       std::string(error.description()));
  }
}

template <typename Value>
std::string toml_text(const Value& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

}  // namespace

void read_settings_file(std::string_view file, std::string_view text, const TakeSetting& take) {
  const toml::table table = parse_toml(file, text);
  std::vector<FileEntry> entries;
  collect_entries(table, "", entries);
  std::sort(entries.begin(), entries.end(), [](const FileEntry& a, const FileEntry& b) {
    return std::pair(a.node->source().begin.line, a.node->source().begin.column) <
           std::pair(b.node->source().begin.line, b.node->source().begin.column);
  });
  // TOML itself refuses a key that is there twice, but "http.workers" in quotes is another key than
  // http.workers.
  std::set<std::string, std::less<>> seen;
  for (const FileEntry& entry : entries) {
    const std::string where =
        "file " + std::string(file) + " line " + std::to_string(entry.node->source().begin.line);
    std::string value;
    if (const SettingInfo* row = row_of(entry.name)) {
      try {
        value = value_text(row->kind, *entry.node);
      } catch (const Error& error) {
        throw Error(ErrorCode::kUsage, where + ": setting " + entry.name + " " + error.message());
      }
    }
    take(entry.name, value, where);
    if (!seen.insert(entry.name).second) {
      throw Error(ErrorCode::kUsage, where + ": setting " + entry.name + " is there twice");
    }
  }
}

std::string settings_file_line(const SettingInfo& row, const Settings& settings) {
  const std::string value = settings.get(row.name);
  const std::string name = std::string(row.name) + " = ";
  switch (row.kind) {
    case SettingKind::kText:
    case SettingKind::kMillis:
      return name + toml_text(toml::value<std::string>(value));
    case SettingKind::kFlag:
    case SettingKind::kWhole:
    case SettingKind::kBytes:
      return name + value;
    case SettingKind::kList:
      break;
  }
  toml::array members;
  std::istringstream list(value);
  for (std::string member; std::getline(list, member, ',');) members.push_back(member);
  return name + toml_text(members);
}

}  // namespace tensormill::config
