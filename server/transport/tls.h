/// TLS 1.2 and 1.3: a certificate chain and its key, in PEM files that are read once.
/// Thread-safety: pure function over its arguments.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include "server/transport/transport.h"

namespace tensormill::transport {

inline bool uses_tls(const TransportOptions& options) { return !options.tls_certificate.empty(); }

/// Sets a server's context up. Throws Error(kUsage) naming the file that cannot be read, a key that is not
/// the certificate's, a certificate without a key.
void set_up_tls(boost::asio::ssl::context& context, const TransportOptions& options);

}  // namespace tensormill::transport
