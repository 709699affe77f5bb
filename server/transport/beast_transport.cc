#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "server/transport/beast_connection.h"
#include "server/transport/listening.h"
#include "server/transport/scheduling.h"

namespace tensormill::transport {
namespace {

using Tcp = asio::ip::tcp;
using ErrorCodeIo = boost::system::error_code;

/// Connections that are answered 503 beyond the limit; past these they are closed without a word.
constexpr int kRefusedConnections = 64;
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::hours kEndlessPatience{24};

/// One I/O thread and the connections that are its own. Of one context with several threads each event would
/// wake a second one, and each connection would need a strand.
struct Loop {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::thread thread;
};

std::vector<std::unique_ptr<Loop>> make_loops(int count) {
  std::vector<std::unique_ptr<Loop>> loops;
  for (int i = 0; i < std::max(1, count); ++i) loops.push_back(std::make_unique<Loop>());
  return loops;
}

class BeastTransport : public ServerTransport {
public:
  explicit BeastTransport(const TransportOptions& options)
      : state_(options),
        loops_(make_loops(options.io_threads)),
        acceptor_(loops_.front()->io),
        pause_(acceptor_.get_executor()) {}

  /// Waits for handlers that do not end.
  ~BeastTransport() override {
    while (!stop(std::chrono::milliseconds(0), kEndlessPatience)) continue;
  }

  void start(http::Handler& handler) override {
    state_.handler = &handler;
    if (uses_tls(state_.options)) {
      state_.tls = std::make_unique<TlsFiles>(state_.options);
    }
    const TransportOptions& options = state_.options;
    listen_at(acceptor_, options.address, options.port, "--listen");
    port_ = acceptor_.local_endpoint().port();
    accept();
    for (const auto& loop : loops_)
      loop->thread = std::thread([&io = loop->io] {
        take_precedence();
        io.run();
      });
  }

  uint16_t port() const override { return port_; }

  int connections() const override { return state_.connections.size(); }

  std::shared_ptr<ConnectionLimits> limits() const override { return state_.limits; }

  bool stop(std::chrono::milliseconds grace, std::chrono::milliseconds patience) override {
    if (!loops_.front()->thread.joinable()) return true;
    state_.draining = true;
    asio::post(acceptor_.get_executor(), [this] {
      ErrorCodeIo ignored;
      acceptor_.close(ignored);
      pause_.cancel();
    });
    for (const auto& connection : state_.connections.all()) connection->drain();
    state_.connections.wait_until_empty(grace);
    for (const auto& connection : state_.connections.all()) connection->abort();
    // Handlers end before the I/O threads do: their body reads and responses still pass through them. A run
    // that nobody waits for any more may still give its answer.
    const auto end = std::chrono::steady_clock::now() + patience;
    const bool ended = state_.workers.stop(end) && state_.bulk.stop(end) && state_.reserved.stop(end) &&
                       state_.streams.stop(end) && state_.in_work.wait_until_idle(end);
    if (!ended) return false;
    for (const auto& loop : loops_) loop->work.reset();
    for (const auto& connection : state_.connections.all()) connection->abort();
    for (const auto& loop : loops_) loop->thread.join();
    return true;
  }

private:
  void accept() {
    asio::io_context& io = loops_[next_loop_]->io;
    next_loop_ = (next_loop_ + 1) % loops_.size();
    acceptor_.async_accept(io, [this](ErrorCodeIo error, Tcp::socket socket) {
      if (state_.draining || error == asio::error::operation_aborted) return;
      if (error) return accept_later();
      take(std::move(socket));
      accept();
    });
  }

  /// Out of descriptors: trying again at once would spin.
  void accept_later() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](ErrorCodeIo error) {
      if (!error) accept();
    });
  }

  void take(Tcp::socket socket) {
    ErrorCodeIo gone;
    const auto client = socket.remote_endpoint(gone);
    if (gone) return;
    // Those that are refused have places of their own, or a client that has too many would shut others out.
    ConnectionLimits::Entry entry = state_.limits->enter(client.address());
    if (!entry.place) state_.report_refusal(entry.reason());
    if (!entry.place && state_.refused >= kRefusedConnections) return;
    auto connection = std::make_shared<Connection>(std::move(socket), state_, std::move(entry.place));
    state_.connections.add(connection.get(), connection);
    connection->start(entry.is_full);
  }

  BeastState state_;
  std::vector<std::unique_ptr<Loop>> loops_;
  size_t next_loop_ = 0;  ///< takes the next connection
  Tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  uint16_t port_ = 0;
};

}  // namespace

void ConnectionSet::add(Connection* key, std::weak_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  connections_[key] = std::move(connection);
}

void ConnectionSet::remove(Connection* key) {
  const std::lock_guard lock(mutex_);
  connections_.erase(key);
  if (connections_.empty()) empty_.notify_all();
}

int ConnectionSet::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(connections_.size());
}

std::vector<std::shared_ptr<Connection>> ConnectionSet::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Connection>> open;
  for (const auto& [key, weak] : connections_) {
    if (auto connection = weak.lock()) open.push_back(std::move(connection));
  }
  return open;
}

bool ConnectionSet::wait_until_empty(std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  return empty_.wait_for(lock, timeout, [this] { return connections_.empty(); });
}

std::unique_ptr<ServerTransport> make_transport(const TransportOptions& options) {
  return std::make_unique<BeastTransport>(options);
}

}  // namespace tensormill::transport
