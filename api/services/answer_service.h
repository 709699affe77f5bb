/// Answers to requests that came with an Idempotency-Key, kept for a day.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tensormill::services {

struct KeptAnswer {
  std::string request_hash;  ///< of the request that it answers
  int status = 0;
  std::vector<std::pair<std::string, std::string>> fields;  ///< names and values of the head
  std::string body;                                         ///< UTF-8
};

/// Thread-safety: all methods from many threads.
class AnswerService {
public:
  virtual ~AnswerService() = default;
  /// Nothing when the caller has used no such key within 24 h.
  virtual std::optional<KeptAnswer> find(const std::string& caller, const std::string& key) = 0;
  /// Durable when it returns.
  virtual void put(const std::string& caller, const std::string& key, const KeptAnswer& answer) = 0;
};

}  // namespace tensormill::services
