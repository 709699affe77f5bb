#include "storage/postgresql/pg_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

namespace tensormill::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A notification may be lost.
constexpr milliseconds kPoll{5'000};
/// Without a connection nobody tells us anything.
constexpr milliseconds kBlindPoll{1'000};
/// Notifications of many changes are one: each takes a lock of the whole database while it commits.
constexpr milliseconds kBetweenNotices{20};

}  // namespace

PgWatch::PgWatch(PgOptions options, std::function<void()> changed, std::function<void()> closed)
    : options_(std::move(options)),
      changed_(std::move(changed)),
      closed_(std::move(closed)),
      wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wakes_.valid()) throw_errno(errno, "cannot make an event");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

PgWatch::~PgWatch() {
  closed_();
  thread_.request_stop();
  wake();
  thread_.join();
}

void PgWatch::wake() {
  const uint64_t one = 1;
  if (::write(wakes_.get(), &one, sizeof(one)) < 0 && errno != EAGAIN)
    throw_errno(errno, "cannot signal an event");
}

void PgWatch::announce() {
  if (!announced_.exchange(true)) wake();
}

bool PgWatch::wait(int socket, milliseconds timeout) {
  std::array<pollfd, 2> descriptors = {{{wakes_.get(), POLLIN, 0}, {socket, POLLIN, 0}}};
  const int ready = ::poll(descriptors.data(), descriptors.size(), static_cast<int>(timeout.count()));
  uint64_t count = 0;
  if (::read(wakes_.get(), &count, sizeof(count)) < 0 && errno != EAGAIN)
    throw_errno(errno, "cannot read an event");
  return ready == 0;
}

void PgWatch::run(const std::stop_token& stop) {
  std::unique_ptr<PgConnection> connection;
  steady_clock::time_point last_notice{};
  while (!stop.stop_requested()) {
    try {
      if (!connection) {
        connection = std::make_unique<PgConnection>(options_);
        connection->run("LISTEN tensormill_jobs");
        changed_();  // what came before that
      }
      milliseconds timeout = kPoll;
      if (announced_) {
        const auto due = last_notice + kBetweenNotices;
        if (steady_clock::now() >= due) {
          announced_ = false;
          last_notice = steady_clock::now();
          connection->run("NOTIFY tensormill_jobs");
        } else {
          timeout = std::chrono::ceil<milliseconds>(due - steady_clock::now());
        }
      }
      if (connection->take_notices()) changed_();
      if (wait(connection->socket(), timeout) && timeout == kPoll) changed_();
    } catch (const Error&) {
      // The database is away; whoever asks it is told.
      connection.reset();
      changed_();
      wait(-1, kBlindPoll);
    }
  }
}

}  // namespace tensormill::storage
