#include "config/service_variables.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace tensormill::config {
namespace {

constexpr std::string_view kHost = "_SERVICE_HOST";
constexpr std::array<std::string_view, 3> kProtocols = {"tcp", "udp", "sctp"};

bool is_address(std::string_view text) {
  std::array<unsigned char, 16> bytes{};
  const std::string terminated(text);
  return ::inet_pton(AF_INET, terminated.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1;
}

bool is_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

bool is_protocol(std::string_view text) {
  return std::find(kProtocols.begin(), kProtocols.end(), text) != kProtocols.end();
}

/// "tcp://10.96.0.7:8080"
bool is_endpoint(std::string_view text) {
  const size_t scheme = text.find("://");
  const size_t colon = text.rfind(':');
  if (scheme == std::string_view::npos || colon <= scheme) return false;
  std::string_view host = text.substr(scheme + 3, colon - scheme - 3);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return is_protocol(text.substr(0, scheme)) && is_address(host) && is_port(text.substr(colon + 1));
}

/// "8080_TCP" and what may stand behind it.
bool is_port_variable(std::string_view name, std::string_view value) {
  const size_t first = name.find('_');
  if (first == std::string_view::npos || !is_port(name.substr(0, first))) return false;
  const std::string_view rest = name.substr(first + 1);
  const size_t second = std::min(rest.find('_'), rest.size());
  std::string protocol(rest.substr(0, second));
  std::transform(protocol.begin(), protocol.end(), protocol.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (!is_protocol(protocol)) return false;
  const std::string_view what = rest.substr(second);
  if (what.empty()) return is_endpoint(value);
  if (what == "_PROTO") return value == protocol;
  if (what == "_PORT") return value == name.substr(0, first);
  return what == "_ADDR" && is_address(value);
}

/// What stands behind the service's name.
bool is_service_variable(std::string_view tail, std::string_view value) {
  if (tail == kHost) return is_address(value);
  if (tail == "_PORT") return is_endpoint(value);
  if (tail == "_SERVICE_PORT" || tail.starts_with("_SERVICE_PORT_")) return is_port(value);
  constexpr std::string_view kPort = "_PORT_";
  return tail.starts_with(kPort) && is_port_variable(tail.substr(kPort.size()), value);
}

}  // namespace

ServiceVariables::ServiceVariables(const std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : environment) {
    if (name.size() > kHost.size() && name.ends_with(kHost) && is_address(value))
      services_.push_back(name.substr(0, name.size() - kHost.size()));
  }
}

bool ServiceVariables::has(std::string_view variable, std::string_view value) const {
  return std::any_of(services_.begin(), services_.end(), [&](const std::string& service) {
    return variable.starts_with(service) && is_service_variable(variable.substr(service.size()), value);
  });
}

}  // namespace tensormill::config
