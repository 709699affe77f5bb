#define _TURN_OFF_PLATFORM_STRING
#include "server/transport/probe.h"

#include <cpprest/http_client.h>

#include "runtime/base/error.h"

namespace tensormill::transport {

ProbeResult probe(const std::string& url, std::chrono::milliseconds timeout) {
  constexpr size_t kMaxBody = 1000;
  if ((!url.starts_with("http://") && !url.starts_with("https://")) || !web::uri::validate(url))
    throw Error(ErrorCode::kUsage, "\"" + url + "\" is no http or https address");
  web::http::client::http_client_config config;
  config.set_timeout(std::chrono::duration_cast<std::chrono::microseconds>(timeout));
  config.set_validate_certificates(false);
  try {
    web::http::client::http_client client(web::uri(url), config);
    const web::http::http_response response = client.request(web::http::methods::GET).get();
    std::string body = response.extract_utf8string(true).get().substr(0, kMaxBody);
    while (body.ends_with('\n')) body.pop_back();
    return {response.status_code(), body};
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kUnavailable, url + " does not answer: " + error.what());
  }
}

}  // namespace tensormill::transport
