// What operators and proxies write: files of settings, and the fields in which a proxy tells its client.
#include <algorithm>
#include <string>

#include "api/http/client_address.h"
#include "config/settings.h"
#include "config/settings_file.h"
#include "runtime/base/error.h"
#include "server/transport/framing.h"
#include "tests/fuzz/targets.h"

namespace tensormill::fuzz {
namespace {

constexpr std::string_view kProxy = "10.0.0.1", kClient = "203.0.113.5";

/// The field lines of a head that check_raw_head has let pass.
http::Headers fields_behind(std::string_view head) {
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

std::string last_said(const http::Headers& headers, const http::AddressSet& trusted,
                      http::ForwardedField field, const std::string& text) {
  http::Headers more = headers;
  more.add(field == http::ForwardedField::kForwarded ? "Forwarded" : "X-Forwarded-For", text);
  return http::client_address(more, std::string(kProxy) + ":4711", trusted, field);
}

void check_client(const http::Headers& headers, http::ForwardedField field) {
  const http::AddressSet trusted({"10.0.0.0/8", "2001:db8::/32"});
  const std::string prefix = field == http::ForwardedField::kForwarded ? "for=" : "";
  const std::string client = http::client_address(headers, std::string(kProxy) + ":4711", trusted, field);
  TM_CHECK(!client.empty() && http::peer_address(client) == client, "no address: \"" + client + "\"");
  TM_CHECK(http::client_address(headers, "[2001:db9::1]:80", trusted, field) == "2001:db9::1",
           "a peer that is not trusted was believed");
  // Whatever the client has written: what the last proxy adds decides.
  TM_CHECK(last_said(headers, trusted, field, prefix + std::string(kClient)) == kClient,
           "a client has hidden its address");
  for (const char* unknown : {"unknown", "_hidden", "10.0.0.1.example", "\"10.0.0.2"})
    TM_CHECK(last_said(headers, trusted, field, prefix + unknown) == kProxy,
             "what stands before an element that cannot be read was believed");
}

}  // namespace

void fuzz_forwarded(std::string_view bytes) {
  transport::check_raw_head(bytes);
  const http::Headers headers = fields_behind(bytes);
  check_client(headers, http::ForwardedField::kXForwardedFor);
  check_client(headers, http::ForwardedField::kForwarded);
  if (const auto host = headers.get("Host")) http::is_address_literal(*host);
}

void fuzz_settings(std::string_view bytes) {
  config::SettingSources sources;
  sources.file_name = "settings.toml";
  sources.file_text = std::string(bytes);
  const config::Settings settings = config::load_settings(sources);
  config::SettingSources again;
  again.file_name = sources.file_name;
  for (const config::SettingInfo& row : config::all_settings()) {
    const std::string value = settings.get(row.name);
    TM_CHECK(std::all_of(value.begin(), value.end(),
                         [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; }),
             std::string(row.name) + " has a control character");
    again.file_text = config::settings_file_line(row, settings) + "\n";
    TM_CHECK(config::load_settings(again).get(row.name) == value,
             std::string(row.name) + " is printed as something else: " + again.file_text);
  }
}

}  // namespace tensormill::fuzz
