/// Calls in flight: the callbacks of gRPC for each, and its answers.
/// Thread-safety: gRPC, workers and whoever answers use a call from threads of their own.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "server/grpc/methods.h"
#include "server/grpc/timers.h"
#include "server/rpc/listener.h"

namespace tensormill::rpc {

class Call;

/// What all calls of a listener share. Thread-safety: all methods from many threads.
class Calls {
public:
  Calls(Handler& handler, const ListenerOptions& options) : handler_(handler), options_(options) {}
  /// What answers a call that begins; it goes when the call is over.
  grpc::ServerGenericBidiReactor* begin(grpc::GenericCallbackServerContext& context);
  /// Ends those that last, and any that begin from now on.
  void drain();
  Handler& handler() { return handler_; }
  const ListenerOptions& options() const { return options_; }
  Timers& timers() { return timers_; }

private:
  friend class Call;
  void add(Call& call, bool lasts);
  void remove(Call& call, bool lasts);

  Handler& handler_;
  const ListenerOptions options_;
  std::mutex mutex_;
  std::set<Call*> lasting_;
  int open_ = 0;
  bool draining_ = false;
  Timers timers_;
};

}  // namespace tensormill::rpc
