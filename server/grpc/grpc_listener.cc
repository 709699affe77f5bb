// The module tensormill-grpc.so: gRPC, which nothing else here links.
#include <grpc/support/log.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "server/grpc/calls.h"

namespace tensormill::rpc {
namespace {

constexpr int kPingTimeoutMs = 20'000;

class Service : public grpc::CallbackGenericService {
public:
  explicit Service(Calls& calls) : calls_(calls) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return calls_.begin(*context);
  }

private:
  Calls& calls_;
};

std::shared_ptr<grpc::ServerCredentials> credentials(const ListenerOptions& options) {
  if (options.tls_certificate.empty()) return grpc::InsecureServerCredentials();
  constexpr unsigned int kLookSeconds = 1;
  using Files = grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsServerCredentialsOptions tls(
      std::make_shared<Files>(options.tls_key, options.tls_certificate, kLookSeconds));
  tls.watch_identity_key_cert_pairs();
  tls.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(tls);
}

class GrpcListener : public Listener {
public:
  std::string start(const ListenerOptions& options, Handler& handler) override {
    // Its lines are no JSON, and clients make it write them.
    gpr_set_log_function([](gpr_log_func_args*) {});
    calls_.emplace(handler, options);
    service_.emplace(*calls_);
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&*service_);
    builder.SetMaxReceiveMessageSize(options.max_message_bytes);
    builder.SetMaxSendMessageSize(-1);
    set_limits(builder, options);
    // gRPC has no limit of connections: it gets those alone that have a place.
    using Experimental = grpc::ServerBuilder::experimental_type;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        Experimental::ExternalConnectionType::FROM_FD, credentials(options));
    server_ = builder.BuildAndStart();
    return server_ ? "" : "gRPC cannot be started";
  }

  void take(int socket) noexcept override {
    // As gRPC has the sockets that it accepts itself.
    constexpr int kOn = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof(kOn));
    ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kPingTimeoutMs, sizeof(kPingTimeoutMs));
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = socket;
    acceptor_->HandleNewConnection(&connection);
  }

  void stop(std::chrono::milliseconds grace) override {
    calls_->drain();
    server_->Shutdown(std::chrono::system_clock::now() + grace);
  }

private:
  static void set_limits(grpc::ServerBuilder& builder, const ListenerOptions& options) {
    // What messages take before they are whole, and nobody has counted them.
    grpc::ResourceQuota quota("messages");
    quota.Resize(options.buffer_bytes);
    builder.SetResourceQuota(quota);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(options.max_header_bytes));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_calls);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               static_cast<int>(options.handshake_timeout.count()));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                               static_cast<int>(options.idle_timeout.count()));
    // A client that is gone without a word keeps no place; one may ask as often whether the server is.
    constexpr int kPingsMs = 10'000;
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.idle_timeout.count()));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingsMs);
    // Messages of a few hundred kB are one frame, and come without a word in between: for that gRPC's probe
    // of what is on its way has to stay on, too, without which the window of a connection never grows.
    constexpr int kAtOnce = 1 << 20;
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kAtOnce);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kAtOnce);
    // gRPC unfolds a message before anybody can bound what it becomes.
    constexpr uint32_t kIdentityAlone = 1u << GRPC_COMPRESS_NONE;
    builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                               static_cast<int>(kIdentityAlone));
  }

  std::optional<Calls> calls_;
  std::optional<Service> service_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace
}  // namespace tensormill::rpc

extern "C" __attribute__((visibility("default"))) tensormill::rpc::Listener* tensormill_make_rpc_listener() {
  return std::make_unique<tensormill::rpc::GrpcListener>().release();
}
