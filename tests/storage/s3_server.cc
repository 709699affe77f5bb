#include "tests/storage/s3_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace tensormill::storage {
namespace {

constexpr const char* kVersion = "v1.8.0";

/// Where `./dev s3-server` puts it.
std::string program() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder =
      cache != nullptr && *cache != '\0' ? cache : std::string(home == nullptr ? "" : home) + "/.cache";
  return folder + "/tensormill/versitygw-" + kVersion + "/versitygw";
}

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

/// A port that nobody has at the moment.
uint16_t free_port() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw_errno(errno, "no free port");
  return ntohs(address.sin_port);
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

S3Server::S3Server() {
  std::filesystem::create_directories(folder_.path() + "/data/blobs-of-tests");
  std::filesystem::create_directories(folder_.path() + "/metadata");
  port_ = free_port();
  start();
}

S3Server::~S3Server() { kill(); }

S3Server& S3Server::shared() {
  static S3Server server;
  return server;
}

void S3Server::start() {
  const std::string path = program();
  if (::access(path.c_str(), X_OK) != 0)
    throw Error(ErrorCode::kNotFound, "there is no " + path + "; `./dev s3-server` installs it");
  const std::string log = folder_.path() + "/log";
  const std::string address = "127.0.0.1:" + std::to_string(port_);
  const std::string data = folder_.path() + "/data", metadata = folder_.path() + "/metadata";
  process_ = ::fork();
  if (process_ < 0) throw_errno(errno, "cannot fork");
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    ::execl(path.c_str(), path.c_str(), "--access", "test-key", "--secret", "test-secret", "--port",
            address.c_str(), "--quiet", "--keep-alive", "posix", "--sidecar", metadata.c_str(), data.c_str(),
            nullptr);
    ::_exit(127);
  }
  wait_until_it_listens();
}

void S3Server::wait_until_it_listens() const {
  constexpr int kTries = 3000;
  const FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  for (int tries = 0; tries < kTries; ++tries) {
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port_);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
    if (::poll(&ended, 1, 10) > 0) break;
  }
  throw Error(ErrorCode::kIo, "the S3 server did not start: " + read_file(folder_.path() + "/log"));
}

void S3Server::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

S3StoreOptions S3Server::options() {
  S3StoreOptions options;
  options.s3.endpoint = "http://127.0.0.1:" + std::to_string(port_);
  options.s3.bucket = "blobs-of-tests";
  options.s3.prefix = "test-" + std::to_string(next_prefix_++) + "/";
  options.s3.part_bytes = uint64_t{5} << 20;
  options.s3.unix_seconds = unix_seconds;
  options.s3.retries.pause = [](std::chrono::milliseconds) {};
  options.credentials.environment = {{"AWS_ACCESS_KEY_ID", "test-key"},
                                     {"AWS_SECRET_ACCESS_KEY", "test-secret"}};
  options.credentials.unix_seconds = unix_seconds;
  options.store_id = "store-of-test";
  return options;
}

std::string S3Server::file_of(const S3StoreOptions& options, const std::string& key) const {
  return folder_.path() + "/data/" + options.s3.bucket + "/" + options.s3.prefix + key;
}

}  // namespace tensormill::storage
