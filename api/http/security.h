/// Rules that keep web pages of others from using a server that listens on loopback: DNS rebinding is stopped
/// by the Host allow-list, cross-site requests by Origin and Sec-Fetch-Site. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/http/message.h"

namespace tensormill::http {

/// Host names and origins beside the loopback names and the own origin.
struct AccessRules {
  /// Without port, lower case. "*.svc.cluster.local" stands for every name below svc.cluster.local.
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> allowed_origins;  ///< "https://console.example"
};

/// Throws Error(kMisdirected) unless Host is "localhost", an address of 127.0.0.0/8, "[::1]" or allowed, with
/// any port.
void check_host(const Request& request, const AccessRules& rules);

/// The same of a listener for operators, which is also reached by the addresses of the machine: throws
/// Error(kMisdirected) unless Host is an address, a loopback name or allowed. A page of another site can only
/// come with a name that its owner has made point here.
void check_operator_host(const Request& request, const AccessRules& rules);

/// Throws Error(kUsage) for what is neither a host name nor "*." with one behind it.
void check_allowed_hosts(const std::vector<std::string>& hosts);

/// For a method that may change state: throws Error(kForbidden) when Origin is neither http(s)://Host nor
/// allowed, or Sec-Fetch-Site is neither same-origin nor none (unless the Origin is allowed).
void check_origin(const Request& request, const AccessRules& rules);
/// The same for a request of any method, such as a GET that starts work.
void check_sender(const Request& request, const AccessRules& rules);

/// The token of an Authorization field, "" where it has another scheme than Bearer.
std::string_view bearer_token(std::string_view authorization);

/// GET, HEAD and OPTIONS change nothing.
bool is_safe_method(std::string_view method);

/// Tells a browser that a page of an allowed origin may read `response`, and answers its preflight (the Fetch
/// standard, section 3.2), whose Allow field names the methods. Nothing is said to other origins, and nothing
/// ever allows credentials. Without allowed origins the response is left as it is.
void add_cors(const Request& request, const AccessRules& rules, Response& response);

}  // namespace tensormill::http
