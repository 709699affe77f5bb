#include <algorithm>

#include "api/http/headers.h"
#include "api/http/message.h"
#include "api/http/target.h"
#include "api/schema/requests.h"
#include "runtime/base/error.h"
#include "server/transport/framing.h"
#include "tests/fuzz/targets.h"

namespace tensormill::fuzz {
namespace {

/// The fields of a head that check_raw_head has let pass.
http::Headers fields_of(std::string_view head) {
  http::Headers headers;
  head.remove_prefix(std::min(head.size(), head.find("\r\n") + 2));
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos)
      headers.add(line.substr(0, colon), http::trim(line.substr(colon + 1)));
    head.remove_prefix(line.size() + 2);
  }
  return headers;
}

}  // namespace

void fuzz_http_head(std::string_view bytes) {
  transport::check_raw_head(bytes);
  const http::Headers headers = fields_of(bytes);
  attempt([&] { transport::check_framing(headers, true); });
  attempt([&] { transport::check_framing(headers, false); });
  const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return;
  http::Request request;
  request.headers = headers;
  const std::string_view rest = line.substr(space + 1);
  http::parse_target(rest.substr(0, rest.find(' ')), request);
  for (const std::string& segment : request.segments) {
    TM_CHECK(http::percent_decode(http::percent_encode(segment), false) == segment, "a segment changed");
  }
  attempt([&] { request.query_int("limit", 1, 1, 100); });
  attempt([&] { request.query_flag("wait"); });
  request.accepts("application/json", "application/x-npz");
}

void fuzz_http_body(std::string_view bytes) {
  attempt([&] { schema::read_target(bytes); });
  attempt([&] { schema::read_job_request(bytes); });
  attempt([&] { schema::read_deployment_spec(bytes); });
}

}  // namespace tensormill::fuzz
