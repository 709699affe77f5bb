/// The client's side of TLS over a socket that does not block. OpenSSL writes without MSG_NOSIGNAL: a program
/// that uses this ignores SIGPIPE. Thread-safety: a context may be shared, a session belongs to one thread at
/// a time.
#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;
struct ssl_st;

namespace tensormill::load {

/// Who is taken for the server.
struct TlsOptions {
  std::string ca;              ///< PEM file of certificates that are trusted; "": the system's
  bool takes_anybody = false;  ///< no certificate is checked
};

using TlsContext = std::shared_ptr<ssl_ctx_st>;
/// Throws Error(kUsage) for a file that holds no certificates.
TlsContext tls_context(const TlsOptions& options);

class TlsSession {
public:
  /// `host` is what the certificate must be for: a name or an address.
  TlsSession(const TlsContext& context, int socket, const std::string& host);

  enum class Step { kDone, kWantsRead, kWantsWrite, kEnd, kFailed };
  /// Each goes as far as the socket lets it; after kWantsRead or kWantsWrite it is called again once the
  /// socket is ready for that. `count` is set with kDone.
  Step handshake();
  Step read(char* data, size_t size, size_t& count);
  Step write(const char* data, size_t size, size_t& count);
  /// Why the handshake failed, for people.
  std::string reason() const;

private:
  Step step_of(int result) const;
  struct Free {
    void operator()(ssl_st* session) const;
  };
  TlsContext context_;
  std::unique_ptr<ssl_st, Free> session_;
};

}  // namespace tensormill::load
