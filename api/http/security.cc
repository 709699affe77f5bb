#include "api/http/security.h"

#include <arpa/inet.h>

#include <algorithm>

#include "api/http/client_address.h"
#include "runtime/base/error.h"

namespace tensormill::http {
namespace {

/// Host without port, lower case; "" when it is malformed.
std::string host_name(std::string_view host) {
  size_t end = host.find(':');
  if (host.starts_with('[')) {
    end = host.find(']');
    if (end == std::string_view::npos) return "";
    ++end;
  }
  const std::string_view port = end >= host.size() ? "" : host.substr(end);
  const bool port_fits = port.empty() || (port[0] == ':' && port.size() <= 6 &&
                                          std::all_of(port.begin() + 1, port.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; }));
  std::string name = port_fits ? to_lower(host.substr(0, end)) : "";
  if (name.ends_with('.')) name.pop_back();
  return name;
}

bool is_loopback_name(const std::string& name) {
  if (name == "localhost" || name == "[::1]") return true;
  in_addr address{};
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& member) { return equals_ignoring_case(member, text); });
}

bool is_allowed_host(const std::vector<std::string>& hosts, const std::string& name) {
  return std::any_of(hosts.begin(), hosts.end(), [&](const std::string& host) {
    if (!host.starts_with("*.")) return equals_ignoring_case(host, name);
    const std::string_view domain = std::string_view(host).substr(1);
    return name.size() > domain.size() &&
           equals_ignoring_case(std::string_view(name).substr(name.size() - domain.size()), domain);
  });
}

[[noreturn]] void misdirected(std::string_view host) {
  throw Error(ErrorCode::kMisdirected,
              "host \"" + std::string(host) + "\" is not served here; add it to http.allowed_hosts");
}

}  // namespace

std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (to_lower(authorization.substr(0, kScheme.size())) != kScheme) return "";
  return trim(authorization.substr(kScheme.size()));
}

bool is_safe_method(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

void check_host(const Request& request, const AccessRules& rules) {
  const std::string_view host = request.headers.get("Host").value_or("");
  const std::string name = host_name(host);
  if (!name.empty() && (is_loopback_name(name) || is_allowed_host(rules.allowed_hosts, name))) return;
  misdirected(host);
}

void check_operator_host(const Request& request, const AccessRules& rules) {
  const std::string_view host = request.headers.get("Host").value_or("");
  if (!is_address_literal(host_name(host))) check_host(request, rules);
}

void check_allowed_hosts(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) {
    const std::string_view name = std::string_view(host).substr(host.starts_with("*.") ? 2 : 0);
    const bool is_name = !name.empty() && name.find_first_of("*/ :") == std::string_view::npos;
    if (is_name || is_address_literal(name)) continue;
    throw Error(ErrorCode::kUsage, "http.allowed_hosts has \"" + host +
                                       "\", which is neither a host name nor *. with one behind it");
  }
}

void check_origin(const Request& request, const AccessRules& rules) {
  if (!is_safe_method(request.method)) check_sender(request, rules);
}

void check_sender(const Request& request, const AccessRules& rules) {
  // A browser sends one of each; of several, none could be trusted to be the browser's.
  for (const char* name : {"Origin", "Sec-Fetch-Site"}) {
    if (request.headers.get_all(name).size() > 1)
      throw Error(ErrorCode::kForbidden, std::string(name) + " stands twice");
  }
  const auto origin = request.headers.get("Origin");
  if (origin && contains(rules.allowed_origins, *origin)) return;
  if (origin) {
    const std::string host(request.headers.get("Host").value_or(""));
    if (!equals_ignoring_case(*origin, "http://" + host) &&
        !equals_ignoring_case(*origin, "https://" + host)) {
      throw Error(ErrorCode::kForbidden, "origin \"" + std::string(*origin) + "\" may not ask this here");
    }
  }
  const auto site = request.headers.get("Sec-Fetch-Site");
  if (site && *site != "same-origin" && *site != "none") {
    throw Error(ErrorCode::kForbidden, "a request from another site may not ask this here");
  }
}

void add_cors(const Request& request, const AccessRules& rules, Response& response) {
  if (rules.allowed_origins.empty()) return;
  const std::string vary(response.headers.get("Vary").value_or(""));
  response.headers.set("Vary", vary.empty() ? "Origin" : vary + ", Origin");
  const auto origin = request.headers.get("Origin");
  if (!origin || !contains(rules.allowed_origins, *origin)) return;
  response.headers.set("Access-Control-Allow-Origin", *origin);
  response.headers.set("Access-Control-Expose-Headers",
                       "ETag, Location, Link, Range, Retry-After, Server-Timing, X-Request-Id, "
                       "X-Deployment-Version, Inference-Header-Content-Length");
  if (request.method != "OPTIONS" || !request.headers.has("Access-Control-Request-Method")) return;
  response.headers.set("Access-Control-Allow-Methods", response.headers.get("Allow").value_or(""));
  response.headers.set(
      "Access-Control-Allow-Headers",
      "Authorization, Content-Type, Content-Range, Content-Encoding, Prefer, Idempotency-Key, "
      "If-Match, If-None-Match, Range, Last-Event-ID, X-Request-Id, "
      "Inference-Header-Content-Length");
  response.headers.set("Access-Control-Max-Age", "600");
}

}  // namespace tensormill::http
