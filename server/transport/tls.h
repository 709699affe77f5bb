/// TLS 1.2 and 1.3: a certificate chain and its key, in PEM files that are read again when they change.
#pragma once

#include <array>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "server/transport/transport.h"

namespace tensormill::transport {

inline bool uses_tls(const TransportOptions& options) { return !options.tls_certificate.empty(); }

/// Each connection begins with what the files had then; those that are open keep what they have. Files that
/// cannot be used, such as a key that is not the certificate's because only one of them was replaced yet,
/// change nothing, and are tried again when they change again. Thread-safety: all methods from many threads.
class TlsFiles {
public:
  using Context = boost::asio::ssl::context;

  /// Throws Error(kUsage) naming the file that cannot be read, a key that is not the certificate's, a
  /// certificate without a key.
  explicit TlsFiles(const TransportOptions& options);
  /// For a connection that begins now. Never null.
  std::shared_ptr<Context> current();

private:
  /// What tells one state of a file from another.
  struct Stamp {
    int64_t seconds = 0, nanoseconds = 0, size = 0;
    uint64_t inode = 0, device = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Texts {
    std::string certificate, key;
  };
  static Stamp stamp_of(const std::string& path);
  std::array<Stamp, 2> stamps() const;
  Texts read() const;
  std::shared_ptr<Context> make(const Texts& texts) const;
  void refresh();

  const TransportOptions options_;
  std::mutex mutex_;
  std::array<Stamp, 2> read_;
  std::shared_ptr<Context> context_;
};

}  // namespace tensormill::transport
