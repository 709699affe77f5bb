#include "server/grpc/calls.h"

#include <array>
#include <exception>
#include <new>

namespace tensormill::rpc {
namespace {

using Context = grpc::GenericCallbackServerContext;

/// Fields of HTTP that mean the same in a call's metadata.
constexpr std::array<std::string_view, 6> kFields = {"authorization",   "x-request-id", "traceparent",
                                                     "x-forwarded-for", "forwarded",    "idempotency-key"};

Fields fields_of(const Context& context) {
  Fields fields;
  for (const std::string_view name : kFields) {
    const auto [begin, end] =
        context.client_metadata().equal_range(grpc::string_ref(name.data(), name.size()));
    for (auto one = begin; one != end; ++one) {
      fields.emplace_back(std::string(name), std::string(one->second.data(), one->second.size()));
    }
  }
  return fields;
}

/// "ipv4:127.0.0.1:40312" and "ipv6:%5B::1%5D:40312" as HTTP's log has them.
std::string peer_of(const Context& context) {
  std::string peer = context.peer();
  const size_t colon = peer.find(':');
  if (colon != std::string::npos) peer.erase(0, colon + 1);
  for (const auto& [coded, plain] : {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    const size_t at = peer.find(coded);
    if (at != std::string::npos) peer.replace(at, 3, plain);
  }
  return peer;
}

grpc::ByteBuffer buffer_of(const Pieces& pieces) { return {pieces.data(), pieces.size()}; }

grpc::Status status_of(const Answer& answer) {
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

}  // namespace

/// One call: gRPC lets go of it when it is over.
class Call : public grpc::ServerGenericBidiReactor {
public:
  Call(Calls& calls, Context& context, const Method& method, bool lasts)
      : calls_(calls), context_(context), method_(method), lasts_(lasts), fields_(fields_of(context)) {
    calls_.add(*this, lasts_);
  }
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
  void ring_after(std::chrono::milliseconds time, std::function<void()> ring) {
    if (!watch_) {
      watch_ = std::make_shared<Watch>();
      watch_->call = this;
    }
    timer_ = calls_.timers().set(time, [watch = watch_, ring = std::move(ring)] {
      const std::lock_guard lock(watch->mutex);
      if (watch->call != nullptr) ring();
    });
  }
  void cancel_timer() {
    if (timer_) calls_.timers().cancel(*timer_);
    timer_.reset();
  }

  void watch_for_message() {
    ring_after(calls_.options().message_timeout, [this] {
      finish({grpc::StatusCode::DEADLINE_EXCEEDED,
              "the message has not come within grpc.message_timeout, " +
                  std::to_string(calls_.options().message_timeout.count()) + " ms"});
    });
  }

  /// Ends a call whose answer nobody takes: what is written stays in front of any other word.
  void watch_for_reader() {
    ring_after(calls_.options().message_timeout, [this] { context_.TryCancel(); });
  }

  /// Hands a request on. `respond` gets the answer on any thread.
  void ask(Asked asked, std::function<void(Answer)> respond, bool is_here = false) {
    Request request;
    request.is_here = is_here;
    request.method = std::move(asked.method);
    request.target = std::move(asked.target);
    request.fields = fields_;
    request.fields.insert(request.fields.end(), asked.fields.begin(), asked.fields.end());
    request.body = std::move(asked.body);
    request.peer = peer_of(context_);
    request.cancelled = cancelled_.get_token();
    request.received = received_;
    calls_.handler().answer(std::move(request), std::move(respond));
  }

  /// What comes behind an answer, whatever it is. Before finish.
  void add_trailing(const Answer& answer) {
    for (const auto& [name, value] : answer.trailing) context_.AddTrailingMetadata(name, value);
  }

  /// Without a key the message is not worth its memory.
  void refuse() {
    ask(refused_request(method_), [this](const Answer& answer) {
      add_trailing(answer);
      finish(answer.code == 0 ? grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "try again")
                              : status_of(answer));
    });
  }

  /// Takes an inference's message apart, and lets go of it.
  grpc::Status split_infer(grpc::ByteBuffer& message, std::shared_ptr<void>& hold, SplitRequest& split) {
    return guarded([&] {
      Answer refusal;
      if (!calls_.handler().reserve(message.Length(), hold, refusal)) return status_of(refusal);
      split = split_request(message);
      message.Clear();
      return grpc::Status::OK;
    });
  }

  /// The request that it is.
  grpc::Status read_infer(const SplitRequest& split, std::shared_ptr<void>& hold, Asked& asked) {
    return guarded([&] {
      Answer refusal;
      // An element of two bytes is one of some forty in the parsed message, and in a growing array twice
      // that.
      constexpr uint64_t kParsed = 32;
      if (!calls_.handler().reserve(kParsed * split.head.size(), hold, refusal)) return status_of(refusal);
      asked = infer_request(split);
      return grpc::Status::OK;
    });
  }

  Calls& calls_;
  Context& context_;
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

namespace {

const grpc::Status kBusy{grpc::StatusCode::UNAVAILABLE, "all workers are busy and the queue is full"};

/// One message, one answer.
class UnaryCall : public Call {
public:
  using Call::Call;

  void start() override {
    if (method_.needs_key && !calls_.handler().may_send(fields_)) return refuse();
    // What anybody may ask says nothing: no message of a stranger is taken into memory.
    if (!method_.needs_key && method_.kind == CallKind::kUnary) return begin_work();
    watch_for_message();
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    cancel_timer();
    if (!ok) return finish({grpc::StatusCode::INVALID_ARGUMENT, "the call has no message"});
    if (method_.kind == CallKind::kHealth) return answer_health();
    if (method_.kind == CallKind::kInfer && message_.Length() <= Handler::kMostHere) return infer_here();
    begin_work();
  }

private:
  void begin_work() {
    if (!calls_.handler().submit([this] { work(); })) finish(kBusy);
  }

  /// A small inference: the whole of it, where the model is quick.
  void infer_here() {
    SplitRequest split;
    grpc::Status status = split_infer(message_, hold_, split);
    if (!status.ok()) return finish(status);
    if (split.head.size() > Handler::kMostHeadHere) {
      const bool begun = calls_.handler().submit([this, split] {
        Asked asked;
        const grpc::Status read = read_infer(split, hold_, asked);
        return read.ok() ? ask_and_reply(std::move(asked), false) : finish(read);
      });
      return begun ? void() : finish(kBusy);
    }
    Asked asked;
    status = read_infer(split, hold_, asked);
    if (!status.ok()) return finish(status);
    if (calls_.handler().is_quick(asked.target)) return ask_and_reply(std::move(asked), true);
    if (!calls_.handler().submit([this, asked] { ask_and_reply(asked, false); })) finish(kBusy);
  }

  void ask_and_reply(Asked asked, bool is_here) {
    ask(
        std::move(asked),
        [this](Answer answer) {
          answer_ = std::move(answer);
          reply(print());
        },
        is_here);
  }

  void answer_health() {
    const grpc::Status status = guarded([&] {
      check_health_service(text_of(message_));
      out_ = buffer_of({slice_of(health_response(calls_.handler().ready()))});
      return grpc::Status::OK;
    });
    reply(status);
  }

  void work() {
    Asked asked;
    grpc::Status status;
    if (method_.kind == CallKind::kInfer) {
      SplitRequest split;
      status = split_infer(message_, hold_, split);
      if (status.ok()) status = read_infer(split, hold_, asked);
    } else {
      status = guarded([&] {
        asked = method_.ask(method_.needs_key ? text_of(message_) : "");
        return grpc::Status::OK;
      });
    }
    return status.ok() ? ask_and_reply(std::move(asked), false) : finish(status);
  }

  grpc::Status print() {
    return guarded([&] {
      add_trailing(answer_);
      const bool is_absent =
          answer_.status == 404 && method_.name.substr(method_.name.rfind('/')) == "/ModelReady";
      if (answer_.code != 0 && !is_absent) return status_of(answer_);
      out_ = buffer_of(method_.kind == CallKind::kInfer ? infer_response(answer_, false)
                                                        : Pieces{slice_of(method_.print(answer_))});
      return grpc::Status::OK;
    });
  }

  void reply(const grpc::Status& status) {
    if (!status.ok()) return finish(status);
    watch_for_reader();
    finish_with(out_);
  }

  grpc::ByteBuffer message_, out_;
  std::shared_ptr<void> hold_;
  Answer answer_;  ///< its memory is the message's that is written
};

/// Inferences one after another, answered in their order; the next one is read when the answer is out, so a
/// stream has the memory of one.
class InferStream : public Call {
public:
  using Call::Call;

  void start() override { return calls_.handler().may_send(fields_) ? StartRead(&message_) : refuse(); }

  void OnReadDone(bool ok) override {
    if (!ok) return finish(grpc::Status::OK);
    {
      const std::lock_guard lock(mutex_);
      if (is_finished()) return;
      is_busy_ = true;
    }
    received_ = std::chrono::steady_clock::now();
    if (!calls_.handler().submit([this] { work(); })) reply(stream_error(kBusy.error_message()));
  }

  void OnWriteDone(bool ok) override {
    cancel_timer();
    hold_.reset();
    answer_ = Answer();
    const std::lock_guard lock(mutex_);
    is_busy_ = false;
    if (!ok || is_draining_) return finish({grpc::StatusCode::UNAVAILABLE, "the stream has ended"});
    StartRead(&message_);
  }

  void drain() override {
    const std::lock_guard lock(mutex_);
    is_draining_ = true;
    if (!is_busy_) finish({grpc::StatusCode::UNAVAILABLE, "the server ends"});
  }

private:
  void work() {
    Asked asked;
    SplitRequest split;
    grpc::Status status = split_infer(message_, hold_, split);
    if (status.ok()) status = read_infer(split, hold_, asked);
    if (!status.ok()) return reply(stream_error(status.error_message()));
    const bool is_final = asked.wants_final;
    ask(std::move(asked), [this, is_final](Answer answer) {
      answer_ = std::move(answer);
      Pieces pieces;
      const grpc::Status made = guarded([&] {
        if (answer_.code != 0) return status_of(answer_);
        pieces = stream_response(infer_response(answer_, is_final));
        return grpc::Status::OK;
      });
      reply(made.ok() ? pieces : stream_error(made.error_message()));
    });
  }

  void reply(const Pieces& pieces) {
    out_ = buffer_of(pieces);
    watch_for_reader();
    StartWrite(&out_);
  }

  grpc::ByteBuffer message_, out_;
  std::shared_ptr<void> hold_;
  Answer answer_;
  std::mutex mutex_;
  bool is_busy_ = false;  ///< between a message and its answer
  bool is_draining_ = false;
};

/// The state now, and each time that it has changed.
class HealthWatch : public Call {
public:
  using Call::Call;

  void start() override {
    watch_for_message();
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    cancel_timer();
    if (!ok) return finish({grpc::StatusCode::INVALID_ARGUMENT, "the call has no message"});
    const grpc::Status status = guarded([&] {
      check_health_service(text_of(message_));
      return grpc::Status::OK;
    });
    if (!status.ok()) return finish(status);
    const std::lock_guard lock(mutex_);
    if (!is_finished()) tell(calls_.handler().ready());
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    if (!ok || is_ending_) return finish({grpc::StatusCode::CANCELLED, "the watch has ended"});
    look_later();
  }

  void OnCancel() override { drain(); }

  void drain() override {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    if (!is_writing_) finish({grpc::StatusCode::CANCELLED, "the watch has ended"});
  }

private:
  static constexpr std::chrono::milliseconds kLook{1000};

  void tell(bool is_serving) {
    told_ = is_serving;
    is_writing_ = true;
    out_ = buffer_of({slice_of(health_response(is_serving))});
    StartWrite(&out_);
  }
  void look_later() {
    ring_after(kLook, [this] {
      const std::lock_guard lock(mutex_);
      if (is_finished()) return;
      const bool is_serving = calls_.handler().ready();
      if (is_serving != told_) return tell(is_serving);
      look_later();
    });
  }

  grpc::ByteBuffer message_, out_;
  std::mutex mutex_;
  bool told_ = false, is_writing_ = false, is_ending_ = false;
};

/// A call that is over before it has begun.
class Refusal : public grpc::ServerGenericBidiReactor {
public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { const std::unique_ptr<Refusal> self(this); }
};

}  // namespace

void Calls::add(Call& call, bool lasts) {
  const std::lock_guard lock(mutex_);
  ++open_;
  if (lasts) lasting_.insert(&call);
}

void Calls::remove(Call& call, bool lasts) {
  const std::lock_guard lock(mutex_);
  --open_;
  if (lasts) lasting_.erase(&call);
}

grpc::ServerGenericBidiReactor* Calls::begin(grpc::GenericCallbackServerContext& context) {
  const auto refused = [](grpc::StatusCode code, const std::string& why) {
    return std::make_unique<Refusal>(grpc::Status(code, why)).release();
  };
  const Method* method = find_method(context.method());
  if (method == nullptr)
    return refused(grpc::StatusCode::UNIMPLEMENTED, "there is no method " + context.method());
  const bool lasts = method->kind == CallKind::kInferStream || method->kind == CallKind::kHealthWatch;
  {
    const std::lock_guard lock(mutex_);
    if (draining_) return refused(grpc::StatusCode::UNAVAILABLE, "the server ends");
    if (open_ >= options_.max_calls)
      return refused(grpc::StatusCode::UNAVAILABLE, "there are " + std::to_string(options_.max_calls) +
                                                        " calls already, which is http.max_connections");
    if (lasts && lasting_.size() >= static_cast<size_t>(options_.max_streams))
      return refused(grpc::StatusCode::UNAVAILABLE, "there are " + std::to_string(options_.max_streams) +
                                                        " streams already, which is http.max_streams");
  }
  std::unique_ptr<Call> call;
  if (method->kind == CallKind::kInferStream) {
    call = std::make_unique<InferStream>(*this, context, *method, lasts);
  } else if (method->kind == CallKind::kHealthWatch) {
    call = std::make_unique<HealthWatch>(*this, context, *method, lasts);
  } else {
    call = std::make_unique<UnaryCall>(*this, context, *method, lasts);
  }
  call->start();
  return call.release();
}

void Calls::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  for (Call* call : lasting_) call->drain();
}

}  // namespace tensormill::rpc
