/// A self-signed certificate made on the spot, and a client that speaks HTTP under TLS.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/file.h"

namespace tensormill::transport {

/// A key and a certificate for 127.0.0.1 in PEM files, gone with this object.
class TestCertificate {
public:
  TestCertificate();
  ~TestCertificate();
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;
  std::string certificate() const { return folder_ + "/certificate.pem"; }
  std::string key() const { return folder_ + "/key.pem"; }
  /// Puts the other one's files in place of these, each at once, as a client of ACME does.
  void replace_certificate(const TestCertificate& other) const;
  void replace_key(const TestCertificate& other) const;

private:
  std::string folder_;
};

/// Blocking; throws std::runtime_error for whatever goes wrong, silence of 20 s included.
class TlsClient {
public:
  /// Accepts the one certificate in `trusted`; `max_version` as TLS1_2_VERSION, 0 for the newest.
  TlsClient(uint16_t port, const std::string& trusted, int max_version = 0);
  void send(std::string_view bytes);
  /// The next `count` bytes; fewer at the end.
  std::string read(size_t count);
  /// Up to and with the empty line.
  std::string read_head();

  /// Says that it sends no more, with TLS's word for that where `in_order`, and goes on reading.
  void end_sending(bool in_order = true);
  /// Without a word.
  void close() { socket_ = FileDescriptor(); }

private:
  struct Free {
    void operator()(SSL* ssl) const { ::SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  };
  FileDescriptor socket_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace tensormill::transport
