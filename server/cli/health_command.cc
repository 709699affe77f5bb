#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/settings_input.h"
#include "server/cli/terminal.h"
#include "server/transport/http_client.h"
#include "server/transport/transport.h"

namespace tensormill::cli {

namespace {

constexpr size_t kMaxBody = size_t{1} << 20;

struct HealthArguments {
  std::shared_ptr<SettingsArguments> settings;
  std::string url;
  int timeout_ms = 3000;
  bool ready = false;
};

/// Where a server with these settings answers a client on this machine: at the listener for operators when
/// there is one, whose threads are its own.
std::string own_address(const config::Settings& settings) {
  const bool has_ops = !settings.ops_listen.empty();
  transport::TransportOptions options;
  transport::parse_listen_address(has_ops ? settings.ops_listen : settings.listen, options);
  const bool is_any = options.address == "0.0.0.0" || options.address == "::";
  std::string host = is_any ? (options.address == "::" ? "::1" : "127.0.0.1") : options.address;
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  const bool tls = !has_ops && !settings.tls_certificate.empty();
  return (tls ? "https://" : "http://") + host + ":" + std::to_string(options.port);
}

int ask(const HealthArguments& arguments, const GlobalOptions& globals) {
  const std::string base =
      arguments.url.empty() ? own_address(settings_of(*arguments.settings)) : arguments.url;
  const std::string url = base + (arguments.ready ? "/readyz" : "/healthz");
  const transport::Address address = transport::address_of(url);
  // What is asked stands on the same machine, whatever name it serves.
  transport::HttpClient client({.base = address.base,
                                .timeout = std::chrono::milliseconds(arguments.timeout_ms),
                                .checks_certificate = false});
  const transport::HttpAnswer answer = client.send({.target = address.target});
  if (globals.json) {
    print_json(Json{{"url", url}, {"status", answer.status()}});
  } else {
    std::string body = answer.text(kMaxBody);
    while (body.ends_with('\n')) body.pop_back();
    std::cout << url << " " << answer.status() << " " << body << std::endl;
  }
  if (answer.status() == 200) return 0;
  throw Error(ErrorCode::kUnavailable, url + " answers " + std::to_string(answer.status()));
}

}  // namespace

Action health_command(CLI::App& app) {
  const auto arguments = std::make_shared<HealthArguments>();
  arguments->settings = add_settings_options(app);
  app.add_option("--url", arguments->url,
                 "http://HOST:PORT; default: where a server with these settings listens");
  app.add_flag("--ready", arguments->ready,
               "whether requests are welcome, not only whether the process works");
  app.add_option("--timeout", arguments->timeout_ms, "milliseconds to wait for the answer")
      ->check(CLI::Range(1, 600'000));
  return [arguments](const GlobalOptions& globals) { return ask(*arguments, globals); };
}

}  // namespace tensormill::cli
