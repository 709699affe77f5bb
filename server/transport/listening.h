/// Binding a TCP port. Thread-safety: as the acceptor.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>

namespace tensormill::transport {

/// Binds and listens. `address`: as parse_listen_address gives it. Throws Error(kUsage) naming address, port
/// and the `option` that chooses them when the port is taken or the address is not one of this machine.
void listen_at(boost::asio::ip::tcp::acceptor& acceptor, const std::string& address, uint16_t port,
               const std::string& option);

}  // namespace tensormill::transport
