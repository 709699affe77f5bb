#include "api/http/scopes.h"

#include <algorithm>
#include <array>

#include "api/http/labels.h"

namespace tensormill::http {
namespace {

constexpr std::array<std::string_view, 6> kScopes = {"infer", "read", "write", "admin", "worker", "label"};
constexpr size_t kMaxName = 128;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

bool is_pattern(std::string_view text) {
  if (text.empty() || text.size() > kMaxName) return false;
  const bool is_prefix = text.ends_with('*');
  const std::string_view name = text.substr(0, text.size() - (is_prefix ? 1 : 0));
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_char)) return false;
  return name.front() != '.' && name.front() != '_' && name.front() != '-';
}

}  // namespace

std::string scope_problem(std::string_view scope) {
  const size_t colon = scope.find(':');
  const std::string_view what = scope.substr(0, colon);
  if (std::find(kScopes.begin(), kScopes.end(), what) == kScopes.end())
    return "is not one of infer, read, write, admin, infer:NAME, read:NAME, worker:compile, worker:measure "
           "and label:NAME=VALUE";
  const std::string_view name = colon == std::string_view::npos ? "" : scope.substr(colon + 1);
  if (what == "worker")
    return name == "compile" || name == "measure" ? "" : "is neither worker:compile nor worker:measure";
  if (what == "label") return is_label(name) ? "" : "names no label such as label:board=rpi4";
  if (colon == std::string_view::npos) return "";
  if (what != "infer" && what != "read") return "cannot have a name: only infer and read can";
  if (!is_pattern(scope.substr(colon + 1))) return "does not name a deployment, or a prefix with * behind it";
  return "";
}

bool grants(const std::vector<std::string>& scopes, std::string_view wanted) {
  return std::any_of(scopes.begin(), scopes.end(),
                     [&](const std::string& scope) { return scope == wanted || scope == "admin"; });
}

std::vector<std::string> granted_names(const std::vector<std::string>& scopes, std::string_view wanted) {
  std::vector<std::string> names;
  for (const std::string& scope : scopes) {
    if (scope.size() > wanted.size() && scope.starts_with(wanted) && scope[wanted.size()] == ':')
      names.push_back(scope.substr(wanted.size() + 1));
  }
  return names;
}

bool matches_name(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view pattern) {
    if (!pattern.ends_with('*')) return pattern == name;
    return name.starts_with(pattern.substr(0, pattern.size() - 1));
  });
}

}  // namespace tensormill::http
