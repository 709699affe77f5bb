#include "server/transport/framing.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "api/http/problem.h"
#include "api/http/time.h"

namespace tensormill::transport {
namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorCode::kInvalidRequest, message); }

bool is_token_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

void check_field_line(std::string_view line) {
  if (line[0] == ' ' || line[0] == '\t') fail("a header field is folded");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) fail("a header line has no field name");
  const std::string_view name = line.substr(0, colon);
  if (!std::all_of(name.begin(), name.end(), is_token_char)) fail("the name of a header field is malformed");
}

uint64_t parse_length(std::string_view text) {
  uint64_t length = 0;
  const bool digits =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (!digits || error != std::errc() || end != text.data() + text.size() || length > uint64_t{1} << 62) {
    fail("Content-Length is malformed");
  }
  return length;
}

}  // namespace

void check_raw_head(std::string_view head) {
  bool first = true;
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    if (end == std::string_view::npos) fail("a line of the request head does not end in CR LF");
    const std::string_view line = head.substr(0, end);
    for (const char c : line) {
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F) {
        fail("the request head has control characters");
      }
    }
    if (!first && !line.empty()) check_field_line(line);
    first = false;
    head.remove_prefix(end + 2);
  }
}

Framing check_framing(const http::Headers& headers, bool http_1_1) {
  const auto hosts = headers.get_all("Host");
  if (hosts.size() > 1) fail("there are " + std::to_string(hosts.size()) + " Host fields, expected 1");
  if (http_1_1 && hosts.empty()) fail("there is no Host field");
  const auto lengths = headers.get_all("Content-Length");
  const auto codings = headers.get_all("Transfer-Encoding");
  if (!lengths.empty() && !codings.empty()) fail("there are both Content-Length and Transfer-Encoding");
  if (lengths.size() > 1)
    fail("there are " + std::to_string(lengths.size()) + " Content-Length fields, expected 1");
  Framing framing;
  if (!lengths.empty()) framing.content_length = parse_length(lengths[0]);
  if (codings.empty()) return framing;
  if (!http_1_1) fail("there is Transfer-Encoding in a request of HTTP/1.0");
  if (codings.size() > 1 || !http::equals_ignoring_case(codings[0], "chunked")) {
    throw Error(ErrorCode::kNotSupported,
                "transfer coding \"" + std::string(codings[0]) + "\" is not supported, only chunked is");
  }
  framing.chunked = true;
  return framing;
}

http::Response refusal(const Error& error, const std::string& request_id) {
  // The inference dialect is the one that tells "not supported" as 501, as RFC 9112 wants it for transfer
  // codings.
  const auto dialect =
      error.code() == ErrorCode::kNotSupported ? http::Dialect::kInference : http::Dialect::kNative;
  http::Response response = http::problem_response(error, request_id, dialect);
  response.headers.set("X-Request-Id", request_id);
  return response;
}

bool status_has_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string serialize_head(const http::Response& response, bool http_1_1, bool close) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head += http::reason_phrase(response.status);
  head += "\r\nDate: " + http::format_http_date(std::time(nullptr)) + "\r\nServer: tensormill\r\n";
  for (const auto& [name, value] : response.headers.fields()) head += name + ": " + value + "\r\n";
  if (status_has_body(response.status)) {
    if (const auto length = response.content_length()) {
      head += "Content-Length: " + std::to_string(*length) + "\r\n";
    } else if (http_1_1) {
      head += "Transfer-Encoding: chunked\r\n";
    }
  }
  if (close) {
    head += "Connection: close\r\n";
  } else if (!http_1_1) {
    head += "Connection: keep-alive\r\n";
  }
  return head + "\r\n";
}

}  // namespace tensormill::transport
