#include "server/transport/transport.h"

#include <arpa/inet.h>

#include <charconv>

#include "runtime/base/error.h"

namespace tensormill::transport {

void parse_listen_address(const std::string& text, TransportOptions& options) {
  const size_t colon = text.rfind(':');
  std::string address = text.substr(0, colon == std::string::npos ? 0 : colon);
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool bracketed = address.size() > 2 && address.front() == '[' && address.back() == ']';
  if (bracketed) address = address.substr(1, address.size() - 2);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), options.port);
  in6_addr buffer{};
  const bool known = address == "localhost" ||
                     (!bracketed && ::inet_pton(AF_INET, address.c_str(), &buffer) == 1) ||
                     (bracketed && ::inet_pton(AF_INET6, address.c_str(), &buffer) == 1);
  if (port.empty() || error != std::errc() || end != port.data() + port.size() || !known) {
    throw Error(ErrorCode::kUsage,
                "listen address \"" + text + "\" is not ADDRESS:PORT, as 127.0.0.1:8080 or [::1]:8080");
  }
  options.address = address;
}

bool is_loopback_address(const std::string& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return address == "localhost" || address == "::1";
}

}  // namespace tensormill::transport
