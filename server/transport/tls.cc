#include "server/transport/tls.h"

#include <openssl/ssl.h>
#include <sys/stat.h>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::transport {

namespace {

std::string read_pem(const std::string& path, const char* what) {
  try {
    return read_file(path);
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, std::string(what) + " " + path + " cannot be used: " + error.message());
  }
}

}  // namespace

TlsFiles::TlsFiles(const TransportOptions& options) : options_(options) {
  if (options_.tls_key.empty()) {
    throw Error(ErrorCode::kUsage,
                "there is a TLS certificate, " + options_.tls_certificate + ", without its key");
  }
  // Before the files are read: what changes while they are is read again.
  read_ = stamps();
  context_ = make(read());
}

TlsFiles::Stamp TlsFiles::stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_size, status.st_ino, status.st_dev};
}

std::array<TlsFiles::Stamp, 2> TlsFiles::stamps() const {
  return {stamp_of(options_.tls_certificate), stamp_of(options_.tls_key)};
}

TlsFiles::Texts TlsFiles::read() const {
  return {read_pem(options_.tls_certificate, "TLS certificate"), read_pem(options_.tls_key, "TLS key")};
}

std::shared_ptr<TlsFiles::Context> TlsFiles::make(const Texts& texts) const {
  auto made = std::make_shared<Context>(Context::tls_server);
  Context& context = *made;
  const auto check = [](const boost::system::error_code& error, const std::string& what) {
    if (error) throw Error(ErrorCode::kUsage, what + " cannot be used: " + error.message());
  };
  boost::system::error_code error;
  ::SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  // A client that renegotiates makes the server work; a cut connection shows in the framing of HTTP.
  ::SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                                     SSL_OP_CIPHER_SERVER_PREFERENCE |
                                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
  // A key under a passphrase would wait for someone at the terminal.
  context.set_password_callback([](size_t, Context::password_purpose) { return std::string(); }, error);
  context.use_certificate_chain(boost::asio::buffer(texts.certificate), error);
  check(error, "TLS certificate " + options_.tls_certificate);
  context.use_private_key(boost::asio::buffer(texts.key), Context::pem, error);
  // A key of another certificate is found here already.
  if (error) {
    throw Error(ErrorCode::kUsage, "TLS key " + options_.tls_key + " cannot be used with " +
                                       options_.tls_certificate + ": " + error.message());
  }
  if (::SSL_CTX_check_private_key(context.native_handle()) != 1) {
    throw Error(ErrorCode::kUsage,
                "TLS key " + options_.tls_key + " is not that of " + options_.tls_certificate);
  }
  return made;
}

void TlsFiles::refresh() {
  const std::array<Stamp, 2> now = stamps();
  if (now == read_) return;
  read_ = now;
  try {
    context_ = make(read());
    if (options_.on_tls_change) options_.on_tls_change(nullptr);
  } catch (const Error& error) {
    if (options_.on_tls_change) options_.on_tls_change(&error);
  }
}

std::shared_ptr<TlsFiles::Context> TlsFiles::current() {
  const std::lock_guard lock(mutex_);
  refresh();
  return context_;
}

}  // namespace tensormill::transport
