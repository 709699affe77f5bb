/// Requests that a client sends again because it does not know what became of them: one with the
/// Idempotency-Key of an earlier one is answered as that one was, and changes nothing (as in
/// draft-ietf-httpapi-idempotency-key-header, section 2). Answers of success are stored; a request that
/// failed may be tried again with its key. An answer is durable before it is sent. When the process dies
/// between the work and its answer, a repeat calls the service again with the same key, and the service does
/// nothing twice: what it makes has an id that follows from its bytes, or the key is stored with the work in
/// one transaction. Thread-safety: all methods from many threads.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "api/http/message.h"
#include "api/services/answer_service.h"

namespace tensormill::endpoints {

class Repeats {
public:
  explicit Repeats(services::AnswerService& answers) : answers_(answers) {}
  /// What `call` answers, or has answered. Throws Error(kInvalidArgument) for a key that came with another
  /// method, target or body, Error(kConflict) while the first request is in work, and what `call` throws.
  http::Response answer(const std::string& key, http::Request& request,
                        const std::function<http::Response()>& call);

private:
  /// One request with a key at a time.
  class Turn;

  services::AnswerService& answers_;
  std::mutex mutex_;
  std::set<std::pair<std::string, std::string>> in_work_;
};

}  // namespace tensormill::endpoints
