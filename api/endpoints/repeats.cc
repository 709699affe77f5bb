#include "api/endpoints/repeats.h"

#include <array>

#include "runtime/base/digest.h"
#include "runtime/base/error.h"

namespace tensormill::endpoints {
namespace {

/// A body whose bytes are hashed as they are read, behind the request's method and target.
class HashedBody final : public http::BodySource {
public:
  explicit HashedBody(const http::Request& request) : inner_(request.body) {
    hasher_.update(request.method + " " + request.target + "\n");
  }
  size_t read(std::span<std::byte> buffer) override {
    const size_t count = inner_->read(buffer);
    hasher_.update(std::string_view(reinterpret_cast<const char*>(buffer.data()), count));
    return count;
  }
  std::optional<uint64_t> length() const override { return inner_->length(); }
  /// Reads what is left.
  std::string hash() {
    std::array<std::byte, 1 << 16> rest;
    while (read(rest) != 0) continue;
    return hasher_.finish().text();
  }

private:
  std::shared_ptr<http::BodySource> inner_;
  Hasher hasher_;
};

http::Response response_of(const services::KeptAnswer& answer) {
  http::Response response;
  response.status = answer.status;
  for (const auto& [name, value] : answer.fields) response.headers.set(name, value);
  response.headers.set("Idempotency-Replayed", "true");
  response.body = answer.body;
  return response;
}

}  // namespace

class Repeats::Turn {
public:
  Turn(Repeats& repeats, std::pair<std::string, std::string> what)
      : repeats_(repeats), what_(std::move(what)) {
    const std::lock_guard lock(repeats.mutex_);
    if (!repeats.in_work_.insert(what_).second) {
      throw Error(ErrorCode::kConflict, "a request with the idempotency key " + what_.second + " is in work");
    }
  }
  ~Turn() {
    const std::lock_guard lock(repeats_.mutex_);
    repeats_.in_work_.erase(what_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

private:
  Repeats& repeats_;
  const std::pair<std::string, std::string> what_;
};

http::Response Repeats::answer(const std::string& key, http::Request& request,
                               const std::function<http::Response()>& call) {
  const Turn turn(*this, {request.caller, key});
  const auto body = std::make_shared<HashedBody>(request);
  if (const auto kept = answers_.find(request.caller, key)) {
    if (body->hash() == kept->request_hash) return response_of(*kept);
    throw Error(ErrorCode::kInvalidArgument, "idempotency key " + key + " was used with another request");
  }
  request.body = body;
  http::Response response = call();
  if (response.status >= 300) return response;
  services::KeptAnswer answer;
  answer.request_hash = body->hash();
  answer.status = response.status;
  answer.fields = response.headers.fields();
  answer.body = std::get<std::string>(response.body);
  answers_.put(request.caller, key, answer);
  return response;
}

}  // namespace tensormill::endpoints
