#include "server/grpc/call.h"

#include <array>

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

}  // namespace

Call::Call(Calls& calls, Context& context, const Method& method, bool lasts)
    : calls_(calls), context_(context), method_(method), lasts_(lasts), fields_(fields_of(context)) {
  calls_.add(*this, lasts_);
}

void Call::ring_after(std::chrono::milliseconds time, std::function<void()> ring) {
  if (!watch_) {
    watch_ = std::make_shared<Watch>();
    watch_->call = this;
  }
  timer_ = calls_.timers().set(time, [watch = watch_, ring = std::move(ring)] {
    const std::lock_guard lock(watch->mutex);
    if (watch->call != nullptr) ring();
  });
}

void Call::watch_for_message() {
  ring_after(calls_.options().message_timeout, [this] {
    finish({grpc::StatusCode::DEADLINE_EXCEEDED,
            "the message has not come within grpc.message_timeout, " +
                std::to_string(calls_.options().message_timeout.count()) + " ms"});
  });
}

void Call::ask(Asked asked, std::function<void(Answer)> respond, bool is_here) {
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

void Call::refuse() {
  ask(refused_request(method_), [this](const Answer& answer) {
    add_trailing(answer);
    finish(answer.code == 0 ? grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "try again")
                            : status_of(answer));
  });
}

grpc::Status Call::split_infer(grpc::ByteBuffer& message, std::shared_ptr<void>& hold, SplitRequest& split) {
  return guarded([&] {
    Answer refusal;
    if (!calls_.handler().reserve(message.Length(), hold, refusal)) return status_of(refusal);
    split = split_request(message);
    message.Clear();
    return grpc::Status::OK;
  });
}

grpc::Status Call::read_infer(const SplitRequest& split, std::shared_ptr<void>& hold, Asked& asked) {
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

}  // namespace tensormill::rpc
