/// A client of plain sockets: sends exactly the bytes of a test and reads with a guard against hanging.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/file.h"

namespace tensormill::transport {

struct RawResponse {
  int status = 0;                              ///< 0: the connection ended before a whole response came
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  bool complete = false;  ///< the body ended as its framing says

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

class RawClient {
public:
  /// `receive_buffer` bytes of kernel buffer when not 0, for clients that do not read. `guard`: longer than
  /// anything takes when all is well.
  explicit RawClient(uint16_t port, int receive_buffer = 0,
                     std::chrono::milliseconds guard = std::chrono::seconds(20));
  /// `family`: AF_INET or AF_INET6.
  RawClient(int family, uint16_t port, int receive_buffer = 0,
            std::chrono::milliseconds guard = std::chrono::milliseconds(20'000));
  /// False when the peer does not take the bytes any more.
  bool send(std::string_view bytes);
  void shutdown_write();
  void close() { socket_ = FileDescriptor(); }
  /// Reads one response; `head_only` after HEAD. Informational responses are responses.
  RawResponse read_response(bool head_only = false);
  /// True when the peer closes without another byte.
  bool at_end();
  /// send() and read_response().
  RawResponse request(std::string_view bytes);

private:
  bool fill();
  std::optional<std::string> take_line();
  bool take(size_t count, std::string& out);
  void read_body(RawResponse& response);
  void read_chunks(RawResponse& response);

  FileDescriptor socket_;
  std::chrono::milliseconds guard_;
  std::string buffer_;
};

}  // namespace tensormill::transport
