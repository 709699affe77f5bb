/// One call of a client, of any kind: what it waits for, what it asks of the server, and its end.
/// Thread-safety: gRPC calls it back from its threads, one call at a time but for OnCancel and drain().
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>

#include "server/grpc/calls.h"
#include "server/grpc/infer_messages.h"
#include "server/grpc/methods.h"
#include "server/grpc/slices.h"
#include "server/grpc/timers.h"

namespace tensormill::rpc {

inline grpc::ByteBuffer buffer_of(const Pieces& pieces) { return {pieces.data(), pieces.size()}; }

inline grpc::Status status_of(const Answer& answer) {
  return {static_cast<grpc::StatusCode>(answer.code), answer.message};
}

/// Calls `make`; what is thrown is a status.
template <typename Make>
grpc::Status guarded(const Make& make) {
  try {
    return make();
  } catch (const MessageError& error) {
    return {error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "the call needs more memory than there is"};
  } catch (const std::exception& error) {
    return {grpc::StatusCode::INTERNAL, error.what()};
  }
}

/// One call: gRPC lets go of it when it is over.
class Call : public grpc::ServerGenericBidiReactor {
public:
  Call(Calls& calls, grpc::GenericCallbackServerContext& context, const Method& method, bool lasts);
  /// Does what comes first.
  virtual void start() = 0;
  /// Of one that lasts: the listener ends.
  virtual void drain() {}

  void OnDone() final {
    const std::unique_ptr<Call> self(this);
    if (watch_) watch_->forget();
    cancel_timer();
    calls_.remove(*this, lasts_);
  }
  void OnCancel() override { cancelled_.request_stop(); }

protected:
  /// A timer may ring when the call is gone.
  struct Watch {
    std::mutex mutex;
    Call* call = nullptr;
    void forget() {
      const std::lock_guard lock(mutex);
      call = nullptr;
    }
  };

  /// As Finish, but once: the first one counts.
  void finish(const grpc::Status& status) {
    if (!finished_.exchange(true)) Finish(status);
  }
  /// The same with an only message, which goes out with the status in one piece.
  void finish_with(const grpc::ByteBuffer& message) {
    if (!finished_.exchange(true)) StartWriteAndFinish(&message, {}, grpc::Status::OK);
  }
  bool is_finished() const { return finished_; }

  /// Calls `ring` after `time`, unless the call is over, or the timer cancelled, by then.
  void ring_after(std::chrono::milliseconds time, std::function<void()> ring);
  void cancel_timer() {
    if (timer_) calls_.timers().cancel(*timer_);
    timer_.reset();
  }

  void watch_for_message();

  /// Ends a call whose answer nobody takes: what is written stays in front of any other word.
  void watch_for_reader() {
    ring_after(calls_.options().message_timeout, [this] { context_.TryCancel(); });
  }

  /// Hands a request on. `respond` gets the answer on any thread.
  void ask(Asked asked, std::function<void(Answer)> respond, bool is_here = false);

  /// What comes behind an answer, whatever it is. Before finish.
  void add_trailing(const Answer& answer) {
    for (const auto& [name, value] : answer.trailing) context_.AddTrailingMetadata(name, value);
  }

  /// Without a key the message is not worth its memory.
  void refuse();

  /// Splits an inference's message (slices.h) and clears it; `hold` counts its memory.
  grpc::Status split_infer(grpc::ByteBuffer& message, std::shared_ptr<void>& hold, SplitRequest& split);
  /// The request that it is.
  grpc::Status read_infer(const SplitRequest& split, std::shared_ptr<void>& hold, Asked& asked);

  Calls& calls_;
  grpc::GenericCallbackServerContext& context_;
  const Method& method_;
  const bool lasts_;
  const Fields fields_;
  std::chrono::steady_clock::time_point received_ = std::chrono::steady_clock::now();
  std::stop_source cancelled_;

private:
  std::atomic<bool> finished_{false};
  std::shared_ptr<Watch> watch_;
  std::optional<Timers::Key> timer_;
};

}  // namespace tensormill::rpc
