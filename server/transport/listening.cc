#include "server/transport/listening.h"

#include "runtime/base/error.h"

namespace tensormill::transport {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;

void listen_at(Tcp::acceptor& acceptor, const std::string& address, uint16_t port,
               const std::string& option) {
  using ErrorCodeIo = boost::system::error_code;
  const auto fail = [&](const ErrorCodeIo& error) {
    const std::string where = "port " + std::to_string(port);
    throw Error(ErrorCode::kUsage,
                error == asio::error::address_in_use
                    ? where + " of " + address + " is taken; choose another with " + option
                    : "cannot listen on " + address + " " + where + ": " + error.message());
  };
  ErrorCodeIo error;
  const Tcp::endpoint endpoint(asio::ip::make_address(address == "localhost" ? "127.0.0.1" : address, error),
                               port);
  if (error) fail(error);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) fail(error);
}

}  // namespace tensormill::transport
