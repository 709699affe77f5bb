#include "server/grpc/calls.h"

#include "server/grpc/call.h"

namespace tensormill::rpc {
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
      out_ = buffer_of(method_.kind == CallKind::kInfer ? infer_response(answer_)
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

/// Inferences one after another, answered in their order; the next one is read when all answers to it are
/// out, so a stream has the memory of one.
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
    if (ok && answers_) return write_next();
    end_request(ok);
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
    const bool wants_final = asked.wants_final;
    ask(std::move(asked), [this, wants_final](Answer answer) {
      answer_ = std::move(answer);
      const grpc::Status made = guarded([&] {
        if (answer_.code != 0) return status_of(answer_);
        answers_ = stream_answers(answer_, wants_final);
        return grpc::Status::OK;
      });
      made.ok() ? write_next() : reply(stream_error(made.error_message()));
    });
  }

  void write_next() {
    Pieces pieces;
    bool is_there = false;
    const grpc::Status made = guarded([&] {
      is_there = answers_->next(pieces);
      return grpc::Status::OK;
    });
    if (made.ok()) return is_there ? reply(pieces) : end_request(true);
    answers_.reset();
    reply(stream_error(made.error_message()));
  }

  /// All that there is to the request is out.
  void end_request(bool ok) {
    answers_.reset();
    hold_.reset();
    answer_ = Answer();
    const std::lock_guard lock(mutex_);
    is_busy_ = false;
    if (!ok || is_draining_) return finish({grpc::StatusCode::UNAVAILABLE, "the stream has ended"});
    StartRead(&message_);
  }

  void reply(const Pieces& pieces) {
    out_ = buffer_of(pieces);
    watch_for_reader();
    StartWrite(&out_);
  }

  grpc::ByteBuffer message_, out_;
  std::shared_ptr<void> hold_;
  Answer answer_;
  std::unique_ptr<StreamAnswers> answers_;  ///< to the request, while some are left
  std::mutex mutex_;
  bool is_busy_ = false;  ///< between a message and its last answer
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
