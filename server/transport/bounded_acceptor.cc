#include "server/transport/bounded_acceptor.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/base/file.h"
#include "server/transport/connection_limits.h"
#include "server/transport/listening.h"
#include "server/transport/scheduling.h"

namespace tensormill::transport {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using ErrorCodeIo = boost::system::error_code;
using Clock = std::chrono::steady_clock;

/// Out of descriptors: trying again at once would spin.
constexpr std::chrono::milliseconds kRetryAccept{100};
/// Who serves a connection does not tell when it has closed it, so that is looked for: now and then, and
/// before one is refused, but not for each of a flood of them.
constexpr std::chrono::milliseconds kLookForClosed{250};
constexpr std::chrono::milliseconds kLookAtMost{10};

/// What tells a socket from all else that gets the number of its descriptor later.
struct SocketId {
  uint64_t inode = 0;
  uint32_t major = 0, minor = 0;
  bool operator==(const SocketId&) const = default;
};

/// Nothing when nothing is open there. Not fstat(): the thread sanitizer takes that for a use of a descriptor
/// which another thread may be closing, and here that is the question.
std::optional<SocketId> id_of(int descriptor) {
  struct statx facts {};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_INO, &facts) != 0) return std::nullopt;
  return SocketId{facts.stx_ino, facts.stx_dev_major, facts.stx_dev_minor};
}

}  // namespace

class BoundedAcceptor::Loop {
public:
  Loop(BoundedAcceptorOptions options, std::shared_ptr<ConnectionLimits> limits, Serve serve)
      : options_(std::move(options)), limits_(std::move(limits)), serve_(std::move(serve)) {
    listen_at(acceptor_, options_.address, options_.port, options_.option);
    port_ = acceptor_.local_endpoint().port();
    // A client may be gone again before it is accepted.
    acceptor_.native_non_blocking(true);
    wait();
    thread_ = std::thread([this] {
      take_precedence();
      io_.run();
    });
  }

  ~Loop() { stop(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  uint16_t port() const { return port_; }

  void stop() {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] {
      stopped_ = true;
      ErrorCodeIo ignored;
      acceptor_.close(ignored);
      pause_.cancel();
      look_.cancel();
    });
    thread_.join();
  }

private:
  /// A connection that is served elsewhere.
  struct Held {
    int socket;
    SocketId id;
    ConnectionLimits::Place place;
  };

  void wait() {
    acceptor_.async_wait(Tcp::acceptor::wait_read, [this](ErrorCodeIo error) {
      if (stopped_ || error) return;
      accept();
    });
  }

  void accept() {
    Tcp::endpoint client;
    auto size = static_cast<socklen_t>(client.capacity());
    FileDescriptor socket(
        ::accept4(acceptor_.native_handle(), client.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      client.resize(size);
      take(std::move(socket), client.address());
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      return wait_later();
    }
    wait();
  }

  void wait_later() {
    pause_.expires_after(kRetryAccept);
    pause_.async_wait([this](ErrorCodeIo error) {
      if (!stopped_ && !error) wait();
    });
  }

  void take(FileDescriptor socket, const asio::ip::address& client) {
    ConnectionLimits::Entry entry = limits_->enter(client);
    if (!entry.place && Clock::now() - looked_ >= kLookAtMost) {
      look();
      entry = limits_->enter(client);
    }
    if (!entry.place) {
      if (options_.on_refused) options_.on_refused(entry.reason());
      return;
    }
    const std::optional<SocketId> id = id_of(socket.get());
    if (!id) return;
    held_.push_back({socket.get(), *id, std::move(*entry.place)});
    if (held_.size() == 1) look_later();
    serve_(socket.release());
  }

  /// Lets go of the places of connections that have been closed.
  void look() {
    std::erase_if(held_, [](const Held& held) { return id_of(held.socket) != held.id; });
    looked_ = Clock::now();
  }

  void look_later() {
    look_.expires_after(kLookForClosed);
    look_.async_wait([this](ErrorCodeIo error) {
      if (stopped_ || error) return;
      look();
      if (!held_.empty()) look_later();
    });
  }

  const BoundedAcceptorOptions options_;
  const std::shared_ptr<ConnectionLimits> limits_;
  const Serve serve_;
  // All below belongs to the thread once that runs.
  asio::io_context io_{1};
  Tcp::acceptor acceptor_{io_};
  asio::steady_timer pause_{io_}, look_{io_};
  std::vector<Held> held_;
  Clock::time_point looked_;
  bool stopped_ = false;
  uint16_t port_ = 0;
  std::thread thread_;
};

BoundedAcceptor::BoundedAcceptor(BoundedAcceptorOptions options, std::shared_ptr<ConnectionLimits> limits,
                                 Serve serve)
    : loop_(std::make_unique<Loop>(std::move(options), std::move(limits), std::move(serve))) {}

BoundedAcceptor::~BoundedAcceptor() = default;

uint16_t BoundedAcceptor::port() const { return loop_->port(); }

void BoundedAcceptor::stop() { loop_->stop(); }

}  // namespace tensormill::transport
