#include "tests/transport/tls_client.h"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

namespace tensormill::transport {
namespace {

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

template <typename Write>
void write_pem(const std::string& path, const Write& write) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  check(file != nullptr && write(file.get()) == 1, "cannot write a PEM file");
}

FileDescriptor connected(uint16_t port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{20, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
        "cannot connect");
  return socket;
}

}  // namespace

TestCertificate::TestCertificate() {
  std::string name = (std::filesystem::temp_directory_path() / "tensormill-tls-XXXXXX").string();
  check(::mkdtemp(name.data()) != nullptr, "mkdtemp");
  folder_ = name;
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(::EVP_EC_gen("P-256"), &::EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(::X509_new(), &::X509_free);
  check(key != nullptr && certificate != nullptr, "cannot make a key");
  ::X509_set_version(certificate.get(), 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(certificate.get()), 1);
  ::X509_gmtime_adj(::X509_getm_notBefore(certificate.get()), -60);
  ::X509_gmtime_adj(::X509_getm_notAfter(certificate.get()), 3600);
  ::X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* subject = ::X509_get_subject_name(certificate.get());
  ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("127.0.0.1"), -1, -1, 0);
  ::X509_set_issuer_name(certificate.get(), subject);
  check(::X509_sign(certificate.get(), key.get(), ::EVP_sha256()) > 0, "cannot sign");
  write_pem(this->certificate(), [&](FILE* file) { return ::PEM_write_X509(file, certificate.get()); });
  write_pem(this->key(), [&](FILE* file) {
    return ::PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

TestCertificate::~TestCertificate() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void TestCertificate::replace_certificate(const TestCertificate& other) const {
  write_file(certificate(), read_file(other.certificate()));
}

void TestCertificate::replace_key(const TestCertificate& other) const {
  write_file(key(), read_file(other.key()));
}

TlsClient::TlsClient(uint16_t port, const std::string& trusted, int max_version)
    : socket_(connected(port)), context_(::SSL_CTX_new(::TLS_client_method())) {
  check(::SSL_CTX_load_verify_file(context_.get(), trusted.c_str()) == 1, "the certificate cannot be read");
  ::SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  if (max_version != 0) ::SSL_CTX_set_max_proto_version(context_.get(), max_version);
  ssl_.reset(::SSL_new(context_.get()));
  ::SSL_set_fd(ssl_.get(), socket_.get());
  check(::SSL_connect(ssl_.get()) == 1, "no handshake");
}

void TlsClient::send(std::string_view bytes) {
  check(
      ::SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) == static_cast<int>(bytes.size()),
      "cannot send");
}

void TlsClient::end_sending(bool in_order) {
  if (in_order) check(::SSL_shutdown(ssl_.get()) >= 0, "cannot say that no more comes");
  check(::shutdown(socket_.get(), SHUT_WR) == 0, "cannot end a half");
}

std::string TlsClient::read(size_t count) {
  std::string bytes(count, '\0');
  size_t done = 0;
  while (done < count) {
    const int got = ::SSL_read(ssl_.get(), bytes.data() + done, static_cast<int>(count - done));
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

std::string TlsClient::read_head() {
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    const std::string byte = read(1);
    check(!byte.empty(), "the connection ended in a head");
    head += byte;
  }
  return head;
}

}  // namespace tensormill::transport
