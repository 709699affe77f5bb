/// What a transport calls: the one entrance from sockets into the API.
#pragma once

#include <functional>
#include <string_view>

#include "api/http/message.h"

namespace tensormill::http {

/// Where a request runs. Those of the reserved lane have threads of their own, so that they are answered
/// while all workers are busy. Those of the bulk lane read or unfold much: their threads give way to all
/// others, and so would threads that they start. Those of the direct lane end within about a millisecond, and
/// unfold nothing: when their body is there already they may run on the thread that read them, which saves
/// two changes of threads.
enum class Lane { kWorker, kBulk, kReserved, kDirect };

/// Thread-safety: all methods from many threads.
class Handler {
public:
  virtual ~Handler() = default;
  /// Decides by method, target, fields and `body`, which is the whole body where that has come already and
  /// else
  /// "", on an I/O thread: must be quick.
  virtual Lane lane(const Request& request, std::string_view body) const noexcept = 0;
  /// Answers one request; errors become responses in here. `request` has method, target, headers, body, peer
  /// and cancelled set, and lives until the response is sent. A body is read before this returns. `respond`
  /// is called once, on any thread, before this returns already; soon, when `cancelled` has stopped.
  virtual void answer(Request& request, const std::function<void(Response)>& respond) noexcept {
    respond(handle(request));
  }
  /// answer(), and waits. A handler that never answers later has this alone.
  virtual Response handle(Request& request) noexcept = 0;
};

}  // namespace tensormill::http
