#include "api/http/target.h"

#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/text.h"

namespace tensormill::http {
namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorCode::kInvalidRequest, message); }

void parse_path(std::string_view path, Request& request) {
  if (path == "/") return;
  path.remove_prefix(1);
  while (true) {
    const size_t slash = path.find('/');
    request.segments.push_back(percent_decode(path.substr(0, slash), false));
    if (slash == std::string_view::npos) return;
    path.remove_prefix(slash + 1);
  }
}

void parse_query(std::string_view query, Request& request) {
  while (!query.empty()) {
    const size_t ampersand = query.find('&');
    const std::string_view pair = query.substr(0, ampersand);
    const size_t equals = pair.find('=');
    if (!pair.empty()) {
      request.query.emplace_back(
          percent_decode(pair.substr(0, equals), true),
          equals == std::string_view::npos ? "" : percent_decode(pair.substr(equals + 1), true));
    }
    if (ampersand == std::string_view::npos) return;
    query.remove_prefix(ampersand + 1);
  }
}

}  // namespace

std::string percent_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit_of_any_case(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit_of_any_case(text[i + 2]) : -1;
      if (high < 0 || low < 0) fail("the request target has a malformed % escape");
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    } else if (static_cast<unsigned char>(c) > 0x7E) {
      fail("the request target has bytes that are not ASCII");
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) fail("the request target has control characters");
    decoded += c;
  }
  if (!is_utf8(decoded)) fail("the request target is not UTF-8");
  return decoded;
}

void parse_target(std::string_view target, Request& request) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t path = target.find_first_of("/?");
    request.headers.set("Host", target.substr(0, path));
    target.remove_prefix(path == std::string_view::npos ? target.size() : path);
    if (!target.starts_with('/')) {
      parse_query(target.substr(target.empty() ? 0 : 1), request);
      return;
    }
    break;
  }
  if (target == "*") {
    request.segments = {"*"};
    return;
  }
  if (!target.starts_with('/')) fail("the request target does not begin with /");
  if (target.find('#') != std::string_view::npos) fail("the request target has a fragment");
  const size_t question = target.find('?');
  parse_path(target.substr(0, question), request);
  if (question != std::string_view::npos) parse_query(target.substr(question + 1), request);
}

}  // namespace tensormill::http
