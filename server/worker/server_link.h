/// A worker's requests to its server. Errors: Error(kUnavailable) where it does not answer, answers 5xx or is
/// not whom the options name; the server's own code for what it refuses; Error(kCancelled) when `stop` was
/// requested; Error(kInvalidJson) for an answer that is none. Thread-safety: all methods from many threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/json_fwd.h"

namespace tensormill::worker {

struct ServerLinkOptions {
  std::string url;           ///< https://HOST[:PORT], or http:// on this machine
  std::string key;           ///< API key; "" for none
  std::string ca_file;       ///< PEM of authorities instead of the system's; "" for those
  std::vector<Digest> pins;  ///< SHA-256 of SubjectPublicKeyInfo: one of these alone, whatever signed it
};

class ServerLink {
public:
  /// Throws Error(kUsage) for a URL that is none, or in the clear to another machine.
  explicit ServerLink(ServerLinkOptions options);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  const std::string& url() const;
  /// The answer, to a JSON body for post; null where it has none. A poll is a request whose answer may take
  /// half a minute.
  enum class Kind { kQuick, kPoll };
  Json get(const std::string& path);
  Json post(const std::string& path, const Json& body, Kind kind = Kind::kQuick,
            const std::stop_token& stop = {});
  /// The answer to `body`, any bytes, as `accept`, with the times that a run's answer says.
  struct Bytes {
    std::string bytes;
    std::vector<double> runs_ms;
  };
  Bytes exchange(const std::string& path, std::string_view body, const std::string& accept);
  /// The answer's bytes into `file`, a new one, of at most `max_bytes`: Error(kTooLarge). `alive` is called
  /// now and then; what it throws ends the request.
  void get_file(const std::string& path, const std::string& file, uint64_t max_bytes,
                const std::function<void()>& alive);
  /// A body of the `size` bytes of the file behind `fd`.
  void post_file(const std::string& path, int fd, uint64_t size, const std::stop_token& stop = {});

private:
  struct Http;
  const std::unique_ptr<Http> http_;
};

}  // namespace tensormill::worker
