#include "server/cli/grpc_endpoint.h"

#include <algorithm>
#include <limits>

#include "api/services/services.h"
#include "runtime/base/error.h"
#include "runtime/base/memory_budget.h"
#include "server/rpc/gateway.h"
#include "server/rpc/listener.h"
#include "server/services/server.h"
#include "server/transport/bounded_acceptor.h"
#include "server/transport/transport.h"

namespace tensormill::cli {
namespace {

/// What a message may have beside tensors of limits.tensor_bytes, so that the limit is told by its name.
constexpr int64_t kBesideTensors = int64_t{1} << 20;

/// `memory`: of all requests in flight.
rpc::ListenerOptions listener_options(const config::Settings& settings, uint64_t memory) {
  rpc::ListenerOptions options;
  options.tls_certificate = settings.tls_certificate;
  options.tls_key = settings.tls_key;
  options.max_message_bytes = static_cast<int>(
      std::min<int64_t>(settings.max_tensor_bytes + kBesideTensors, std::numeric_limits<int>::max()));
  options.buffer_bytes = std::max<uint64_t>(memory, 2 * static_cast<uint64_t>(options.max_message_bytes));
  options.max_calls = settings.max_connections;
  options.max_streams = settings.max_streams;
  options.max_header_bytes = static_cast<uint32_t>(settings.max_header_bytes);
  options.handshake_timeout = settings.header_timeout;
  options.message_timeout = settings.grpc_message_timeout;
  options.idle_timeout = settings.keep_alive_timeout;
  return options;
}

}  // namespace

GrpcEndpoint::GrpcEndpoint(const config::Settings& settings)
    : settings_(settings), is_on_(!settings.grpc_listen.empty()) {
  if (!is_on_) return;
  transport::TransportOptions listen;
  try {
    transport::parse_listen_address(settings.grpc_listen, listen);
  } catch (const Error& error) {
    throw Error(error.code(), "grpc.listen: " + error.message());
  }
  address_ = listen.address;
  wanted_port_ = listen.port;
}

GrpcEndpoint::~GrpcEndpoint() = default;

void GrpcEndpoint::start(server::Server& server, http::Handler& api, const transport::ServerTransport& http,
                         std::function<void(std::string_view)> on_refused) {
  if (!is_on_) return;
  listener_ = rpc::load_listener();
  gateway_ =
      std::make_unique<rpc::Gateway>(api, server.services(), server.memory(),
                                     rpc::GatewayOptions{settings_.http_workers, settings_.http_queue});
  const std::string wrong =
      listener_->start(listener_options(settings_, server.memory()->bytes()), *gateway_);
  if (!wrong.empty()) throw Error(ErrorCode::kUsage, wrong);
  acceptor_ = std::make_unique<transport::BoundedAcceptor>(
      transport::BoundedAcceptorOptions{address_, wanted_port_, "grpc.listen", std::move(on_refused)},
      http.limits(), [this](int socket) { listener_->take(socket); });
  server.set_grpc_port(acceptor_->port());
}

uint16_t GrpcEndpoint::port() const { return acceptor_->port(); }

bool GrpcEndpoint::stop(std::chrono::milliseconds grace, std::chrono::milliseconds patience) {
  if (!acceptor_) return true;
  acceptor_->stop();
  listener_->stop(grace);
  return gateway_->stop(std::chrono::steady_clock::now() + patience);
}

}  // namespace tensormill::cli
