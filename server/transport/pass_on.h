/// Requests that another process of the same kind answers: passed on whole, and its answer passed back, over
/// cpprestsdk's client. Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "api/http/message.h"

namespace tensormill::transport {

struct PassOnOptions {
  std::string ca_file;                        ///< PEM of authorities instead of the system's; "" for those
  std::chrono::milliseconds timeout{60'000};  ///< without a byte of the answer
};

/// Throws Error(kUsage) for what is no https://HOST[:PORT], or http:// on this machine.
void check_address(const std::string& setting, const std::string& url);

class PassOn {
public:
  explicit PassOn(PassOnOptions options);
  ~PassOn();
  PassOn(const PassOn&) = delete;
  PassOn& operator=(const PassOn&) = delete;

  /// The answer of one of `urls`, round robin; the next one is called where one cannot be reached. The body
  /// is read here, into memory that counts as the request's; the answer comes on another thread. What it
  /// throws or tells: what reading a body throws, Error(kUnavailable) where nobody answers.
  http::Response answer(http::Request& request, const std::vector<std::string>& urls);

private:
  struct Clients;
  const std::shared_ptr<Clients> clients_;
};

}  // namespace tensormill::transport
