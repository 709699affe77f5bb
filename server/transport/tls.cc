#include "server/transport/tls.h"

#include <openssl/ssl.h>

#include "runtime/base/error.h"

namespace tensormill::transport {

void set_up_tls(boost::asio::ssl::context& context, const TransportOptions& options) {
  if (options.tls_key.empty()) {
    throw Error(ErrorCode::kUsage,
                "there is a TLS certificate, " + options.tls_certificate + ", without its key");
  }
  const auto check = [](const boost::system::error_code& error, const std::string& what) {
    if (error) throw Error(ErrorCode::kUsage, what + " cannot be used: " + error.message());
  };
  boost::system::error_code error;
  ::SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  // A client that renegotiates makes the server work; a cut connection shows in the framing of HTTP.
  ::SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                                     SSL_OP_CIPHER_SERVER_PREFERENCE |
                                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
  context.use_certificate_chain_file(options.tls_certificate, error);
  check(error, "TLS certificate " + options.tls_certificate);
  context.use_private_key_file(options.tls_key, boost::asio::ssl::context::pem, error);
  check(error, "TLS key " + options.tls_key);
  if (::SSL_CTX_check_private_key(context.native_handle()) != 1) {
    throw Error(ErrorCode::kUsage,
                "TLS key " + options.tls_key + " is not that of " + options.tls_certificate);
  }
}

}  // namespace tensormill::transport
