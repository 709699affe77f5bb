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
  /// From an address of the loopback network, as "127.0.0.2".
  RawClient(uint16_t port, const std::string& from);
  /// False when the peer does not take the bytes any more.
  bool send(std::string_view bytes);
  void shutdown_write();
  void close() { socket_ = FileDescriptor(); }
  /// Closes with a reset, whatever is unread or unsent.
  void reset();
  /// What comes next, up to `size` bytes; "" at the end.
  std::string read_some(size_t size);
  /// Reads one response; `head_only` after HEAD. Informational responses are responses.
  RawResponse read_response(bool head_only = false);
  /// True when the peer closes without another byte.
  bool at_end();
  /// send() and read_response().
  RawResponse request(std::string_view bytes);

private:
  void prepare(int receive_buffer);
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
