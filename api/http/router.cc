#include "api/http/router.h"

#include <set>

namespace tensormill::http {
namespace {

bool is_parameter(std::string_view segment) { return segment.starts_with('{'); }

/// Number of literal segments when `pattern` covers `segments`, else -1.
int literals_matched(const std::vector<std::string>& pattern, const std::vector<std::string>& segments) {
  if (pattern.size() != segments.size()) return -1;
  int literals = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (is_parameter(pattern[i])) {
      if (segments[i].empty()) return -1;
    } else if (pattern[i] == segments[i]) {
      ++literals;
    } else {
      return -1;
    }
  }
  return literals;
}

}  // namespace

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> segments;
  if (path == "/") return segments;
  path.remove_prefix(1);
  while (true) {
    const size_t slash = path.find('/');
    segments.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

void Router::add(std::string_view method, std::string_view pattern, int route) {
  entries_.push_back({std::string(method), split_path(pattern), route});
}

Router::Match Router::match(std::string_view method, const std::vector<std::string>& segments) const {
  Match match;
  std::set<std::string> allowed;
  int best = -1;
  for (const Entry& entry : entries_) {
    const int literals = literals_matched(entry.segments, segments);
    if (literals < 0) continue;
    allowed.insert(entry.method);
    if (entry.method == "GET") allowed.insert("HEAD");
    const bool same_method = entry.method == method || (entry.method == "GET" && method == "HEAD");
    if (!same_method || literals <= best) continue;
    best = literals;
    match.route = entry.route;
    match.parameters.clear();
    for (size_t i = 0; i < segments.size(); ++i) {
      const std::string& name = entry.segments[i];
      if (is_parameter(name)) match.parameters[name.substr(1, name.size() - 2)] = segments[i];
    }
  }
  if (!allowed.empty()) allowed.insert("OPTIONS");
  match.allowed.assign(allowed.begin(), allowed.end());
  return match;
}

}  // namespace tensormill::http
