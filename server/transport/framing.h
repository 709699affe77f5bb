/// Rules for request heads that hold whatever the library would let pass, so that no proxy in front can see
/// other message boundaries than this server does. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/headers.h"
#include "api/http/message.h"
#include "runtime/base/error.h"

namespace tensormill::transport {

/// Looks at the bytes of a head (request line and fields, with the empty line). Throws Error(kInvalidRequest)
/// for control characters, line ends other than CR LF, folded lines, white space before a colon.
void check_raw_head(std::string_view head);

struct Framing {
  bool chunked = false;
  std::optional<uint64_t> content_length;
};

/// How the body is delimited. Throws Error(kInvalidRequest) for a repeated or malformed Content-Length, one
/// beside Transfer-Encoding, Transfer-Encoding in HTTP/1.0, a missing or repeated Host in HTTP/1.1;
/// Error(kNotSupported), answered with status 501, for a transfer coding other than chunked.
Framing check_framing(const http::Headers& headers, bool http_1_1);

/// The response to a request that never reached the handler: problem+json that closes the connection, with
/// status 501 for kNotSupported.
http::Response refusal(const Error& error, const std::string& request_id);

/// Status line and fields, with the empty line: adds Date, and Content-Length, Transfer-Encoding and
/// Connection as status, body and `close` need them.
std::string serialize_head(const http::Response& response, bool http_1_1, bool close);

/// 1xx, 204 and 304 never have a body.
bool status_has_body(int status);

}  // namespace tensormill::transport
