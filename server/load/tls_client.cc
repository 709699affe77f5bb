#include "server/load/tls_client.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "runtime/base/error.h"

namespace tensormill::load {

TlsContext tls_context(const TlsOptions& options) {
  const TlsContext context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  TM_CHECK(context != nullptr, "no TLS context");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // A request that is sent again from another place of the same text must not be refused.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (options.takes_anybody) return context;
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (options.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else if (SSL_CTX_load_verify_locations(context.get(), options.ca.c_str(), nullptr) != 1) {
    ERR_clear_error();
    throw Error(ErrorCode::kUsage, options.ca + " holds no certificates in PEM form");
  }
  return context;
}

void TlsSession::Free::operator()(ssl_st* session) const { SSL_free(session); }

TlsSession::TlsSession(const TlsContext& context, int socket, const std::string& host)
    : context_(context), session_(SSL_new(context.get())) {
  TM_CHECK(session_ != nullptr, "no TLS session");
  SSL_set_fd(session_.get(), socket);
  unsigned char address[sizeof(in6_addr)];
  const bool is_address =
      ::inet_pton(AF_INET, host.c_str(), address) == 1 || ::inet_pton(AF_INET6, host.c_str(), address) == 1;
  if (is_address) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session_.get()), host.c_str());
  } else {
    SSL_set_tlsext_host_name(session_.get(), host.c_str());
    SSL_set1_host(session_.get(), host.c_str());
  }
}

TlsSession::Step TlsSession::step_of(int result) const {
  switch (SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_NONE:
      return Step::kDone;
    case SSL_ERROR_WANT_READ:
      return Step::kWantsRead;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWantsWrite;
    case SSL_ERROR_ZERO_RETURN:
      return Step::kEnd;
    default:
      return Step::kFailed;
  }
}

TlsSession::Step TlsSession::handshake() {
  ERR_clear_error();
  return step_of(SSL_connect(session_.get()));
}

TlsSession::Step TlsSession::read(char* data, size_t size, size_t& count) {
  ERR_clear_error();
  return step_of(SSL_read_ex(session_.get(), data, size, &count));
}

TlsSession::Step TlsSession::write(const char* data, size_t size, size_t& count) {
  ERR_clear_error();
  return step_of(SSL_write_ex(session_.get(), data, size, &count));
}

std::string TlsSession::reason() const {
  const long verdict = SSL_get_verify_result(session_.get());
  if (verdict != X509_V_OK) return std::string("its certificate: ") + X509_verify_cert_error_string(verdict);
  return "no TLS";
}

}  // namespace tensormill::load
