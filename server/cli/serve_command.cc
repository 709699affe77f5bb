#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <iostream>
#include <memory>
#include <optional>

#include "api/endpoints/api.h"
#include "api/http/client_address.h"
#include "api/http/message.h"
#include "api/http/security.h"
#include "api/http/trace_context.h"
#include "api/services/services.h"
#include "compiler/driver/compile.h"
#include "config/settings.h"
#include "runtime/base/cpu_count.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/names.h"
#include "server/cli/cli.h"
#include "server/cli/exit_guard.h"
#include "server/cli/grpc_endpoint.h"
#include "server/cli/ops_handler.h"
#include "server/cli/settings_input.h"
#include "server/cli/stop_signals.h"
#include "server/metrics/audit_log.h"
#include "server/metrics/registry.h"
#include "server/metrics/request_log.h"
#include "server/services/deployments/free_memory.h"
#include "server/services/keys/key_file.h"
#include "server/services/server.h"
#include "server/trace/traced_handler.h"
#include "server/transport/pass_on.h"
#include "server/transport/transport.h"

namespace tensormill::cli {

namespace {

/// What cancelled handlers get to end, and what the process has left after http.drain_timeout in all.
constexpr std::chrono::milliseconds kHandlerPatience{1'500};
constexpr std::chrono::milliseconds kExitGrace{4'000};

void wait_for_signal(const FileDescriptor& signals) {
  pollfd watched{signals.get(), POLLIN, 0};
  while (::poll(&watched, 1, -1) < 0) {
    if (errno != EINTR) throw_errno(errno, "cannot wait for signals");
  }
}

/// The number of keys; 0 when no file is configured.
size_t count_keys(const config::Settings& settings) {
  if (settings.keys_file.empty()) return 0;
  try {
    return server::read_keys(settings.keys_file).size();
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, "keys_file: " + error.message() + "; `tensormill keys add` makes one");
  }
}

/// Without keys nobody but this machine is let in.
void check_may_listen(const std::string& setting, const std::string& address, size_t keys) {
  if (keys > 0 || transport::is_loopback_address(address)) return;
  throw Error(ErrorCode::kUsage, setting +
                                     " is not loopback and there are no keys: listen on 127.0.0.1, or "
                                     "configure keys_file and make keys with `tensormill keys add`");
}

/// Memory is shared with this machine alone.
void check_may_share(const config::Settings& settings, const std::string& listen,
                     const std::string& address) {
  if (transport::is_loopback_address(address)) return;
  for (const auto& [is_on, setting] : {std::pair(settings.shared_memory, "v2.system_shared_memory"),
                                       std::pair(settings.cuda_shared_memory, "v2.cuda_shared_memory")}) {
    if (is_on)
      throw Error(ErrorCode::kUsage,
                  std::string(setting) + " is for this machine alone, and " + listen + " is not loopback");
  }
}

std::vector<std::string> shared_memory_prefixes(const config::Settings& settings) {
  for (const std::string& prefix : settings.shared_memory_prefixes) {
    if (!is_name(prefix))
      throw Error(ErrorCode::kUsage,
                  "v2.shared_memory_prefixes: \"" + prefix + "\" is the beginning of no object's name");
  }
  return settings.shared_memory_prefixes;
}

transport::TransportOptions transport_options(const config::Settings& settings, const GrpcEndpoint& grpc) {
  transport::TransportOptions options;
  transport::parse_listen_address(settings.listen, options);
  const size_t keys = count_keys(settings);
  check_may_listen("listen " + settings.listen, options.address, keys);
  check_may_share(settings, "listen " + settings.listen, options.address);
  if (grpc.is_on()) check_may_share(settings, "grpc.listen " + settings.grpc_listen, grpc.address());
  if (grpc.is_on()) check_may_listen("grpc.listen " + settings.grpc_listen, grpc.address(), keys);
  options.io_threads =
      settings.http_io_threads > 0 ? settings.http_io_threads : std::clamp(usable_cores(), 2, 64);
  options.workers = settings.http_workers;
  options.queue = settings.http_queue;
  options.max_connections = settings.max_connections;
  options.tls_certificate = settings.tls_certificate;
  options.tls_key = settings.tls_key;
  options.max_header_bytes = static_cast<uint32_t>(settings.max_header_bytes);
  options.header_timeout = settings.header_timeout;
  options.body_timeout = settings.body_timeout;
  options.keep_alive_timeout = settings.keep_alive_timeout;
  options.write_timeout = settings.write_timeout;
  options.max_connections_per_address = settings.max_connections_per_address;
  options.unlimited_addresses = settings.unlimited_addresses;
  // All clients of a proxy come from its address.
  options.unlimited_addresses.insert(options.unlimited_addresses.end(), settings.trusted_proxies.begin(),
                                     settings.trusted_proxies.end());
  options.max_streams = settings.max_streams;
  options.min_read_rate = static_cast<uint64_t>(settings.min_read_rate);
  options.min_write_rate = static_cast<uint64_t>(settings.min_write_rate);
  return options;
}

http::AddressSet trusted_proxies(const config::Settings& settings) {
  try {
    return http::AddressSet(settings.trusted_proxies);
  } catch (const Error& error) {
    throw Error(error.code(), "http.trusted_proxies: " + error.message());
  }
}

/// What became of certificates that were read again, for the log and the metrics.
void report_tls(transport::TransportOptions& options, metrics::RequestLog& log, metrics::Registry& registry) {
  options.on_tls_change = [&log, &registry, certificate = options.tls_certificate](const Error* error) {
    registry.count("tls_reloads_total", {{"outcome", error == nullptr ? "ok" : "failed"}});
    if (error == nullptr) {
      log.note("the TLS certificate was read again", {{"file", certificate}});
    } else {
      log.fail("the TLS certificate has changed and cannot be used; the old one stays",
               {{"reason", error->message()}});
    }
  };
}

/// What became of a key file that was read again.
void report_keys(server::Server& server, metrics::RequestLog& log, const std::string& file) {
  server.on_key_file_change([&log, &registry = server.metrics(), file](const Error* error) {
    registry.count("key_file_reloads_total", {{"outcome", error == nullptr ? "ok" : "failed"}});
    if (error == nullptr) {
      log.note("the key file was read again", {{"file", file}});
    } else {
      log.fail("the key file has changed and cannot be read; none of its keys lets anybody in",
               {{"file", file}, {"reason", error->message()}});
    }
  });
}

/// What no handler sees is in no log line and in none of its metrics.
void count_refusals(transport::TransportOptions& options, metrics::Registry& registry) {
  options.on_refused = [&registry](std::string_view reason) {
    registry.count("http_refused_total", {{"reason", std::string(reason)}});
  };
}

endpoints::ApiOptions api_options(const config::Settings& settings, metrics::RequestLog& log,
                                  metrics::AuditLog& audit, server::Server& server) {
  endpoints::ApiOptions options;
  options.memory = server.memory();
  options.allowed_hosts = settings.allowed_hosts;
  options.allowed_origins = settings.allowed_origins;
  http::check_allowed_hosts(settings.allowed_hosts);
  options.trusted_proxies = trusted_proxies(settings);
  options.forwarded_field = http::forwarded_field(settings.forwarded_field);
  options.max_json_bytes = settings.max_json_bytes;
  options.max_image_bytes = settings.max_image_bytes;
  options.max_records_bytes = settings.max_records_bytes;
  options.max_tensor_bytes = settings.max_tensor_bytes;
  options.max_model_bytes = settings.max_model_bytes;
  options.max_rate = settings.max_rate;
  options.read_only = settings.read_only;
  options.shared_memory = settings.shared_memory;
  options.shared_memory_prefixes = shared_memory_prefixes(settings);
  options.cuda_shared_memory = settings.cuda_shared_memory;
  options.v2_name = settings.v2_server_name;
  options.version = driver::compiler_version();
  if (!settings.replica_address.empty())
    transport::check_address("replica.address", settings.replica_address);
  if (!settings.catalog_url.empty() && !settings.blobs.empty()) {
    const auto others = std::make_shared<transport::PassOn>(
        transport::PassOnOptions{settings.replica_ca_file, 2 * settings.run_timeout});
    options.forward = [others](http::Request& request, const std::vector<std::string>& urls) {
      return others->answer(request, urls);
    };
  }
  options.on_response = [&log, &audit, &server, &registry = server.metrics()](const http::Request& request,
                                                                              const http::Response& response,
                                                                              const std::string& route) {
    // A path that no route has is a stranger's text: no label of its own, and no method either.
    const std::string method = route.empty() ? "" : request.method;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - request.received;
    registry.count("http_requests_total",
                   {{"route", route}, {"method", method}, {"code", std::to_string(response.status)}});
    registry.observe("http_request_duration_seconds", {{"route", route}, {"method", method}}, spent.count(),
                     http::recorded_trace_of(request.headers));
    if (response.status == 429) registry.count("quota_refusals_total", {});
    const metrics::AnsweredRequest answered = {
        request.request_id,
        request.method,
        metrics::logged_target(request.target),
        route,
        request.caller,
        request.peer,
        response.status,
        spent.count() * 1e3,
        http::trace_id_of(request.headers.get("traceparent").value_or("")),
        request.client};
    log.answered(answered);
    server.audit(answered);
    if (!audit.answered(answered))
      log.note("the audit log cannot be written", {{"request_id", request.request_id}});
  };
  return options;
}

std::string url_of(const std::string& address, uint16_t port, bool tls = false) {
  const std::string host = address.find(':') == std::string::npos ? address : "[" + address + "]";
  return (tls ? "https://" : "http://") + host + ":" + std::to_string(port);
}

/// Metrics and health on a listener, and threads, of their own.
class Ops {
public:
  Ops(const config::Settings& settings, server::Server& server)
      : handler_(server.metrics(), *server.services().health, {settings.allowed_hosts, {}}) {
    if (settings.ops_listen.empty()) return;
    transport::TransportOptions options;
    transport::parse_listen_address(settings.ops_listen, options);
    options.workers = 2;
    options.max_connections = 64;
    options.max_connections_per_address = 16;
    address_ = options.address;
    transport_ = transport::make_transport(options);
    transport_->start(handler_);
  }
  std::string url() const { return transport_ ? url_of(address_, transport_->port()) : ""; }
  /// As ServerTransport::stop.
  bool stop() { return !transport_ || transport_->stop(std::chrono::milliseconds(0), kHandlerPatience); }

private:
  OpsHandler handler_;
  std::string address_;
  std::unique_ptr<transport::ServerTransport> transport_;
};

/// The API, traced where a collector is named.
class Entrance {
public:
  Entrance(const config::Settings& settings, server::Server& server, endpoints::ApiOptions options)
      : settings_(settings.otel_sample_percent),
        api_(endpoints::make_api(server.services(), with_traces(std::move(options), settings))) {
    if (settings.otel_endpoint.empty()) return;
    export_.emplace(
        trace::ExportOptions{settings.otel_endpoint, settings.otel_service, driver::compiler_version()},
        server.metrics());
    traced_.emplace(*api_, *export_, settings_);
  }
  http::Handler& handler() {
    if (traced_) return *traced_;
    return *api_;
  }

private:
  endpoints::ApiOptions with_traces(endpoints::ApiOptions options, const config::Settings& settings) {
    if (!settings.otel_endpoint.empty()) options.traces = &settings_;
    return options;
  }

  trace::TraceSettings settings_;
  const std::unique_ptr<http::Handler> api_;
  std::optional<trace::TraceExport> export_;
  std::optional<trace::TracedHandler> traced_;
};

int serve(const SettingsArguments& arguments) {
  server::limit_arenas();
  const config::Settings settings = settings_of(arguments);
  // Before there is a store.
  if (!settings.otel_endpoint.empty()) static_cast<void>(trace::checked_endpoint(settings.otel_endpoint));
  GrpcEndpoint grpc(settings);
  transport::TransportOptions options = transport_options(settings, grpc);
  const FileDescriptor signals = stop_signals();
  // The first to come and the last to go: it covers the start and the end of all that is below. The log may
  // be a pipe that nobody reads any more, and hold this thread for ever.
  ExitGuard guard("the process ends although requests or jobs are still in work", signals,
                  settings.drain_timeout + kExitGrace);
  metrics::RequestLog log(settings.log_level);
  metrics::AuditLog audit(settings.audit_log);
  server::Server server(settings);
  Entrance api(settings, server, api_options(settings, log, audit, server));
  report_tls(options, log, server.metrics());
  count_refusals(options, server.metrics());
  report_keys(server, log, settings.keys_file);
  Ops ops(settings, server);
  const auto transport = transport::make_transport(options);
  transport->start(api.handler());
  grpc.start(server, api.handler(), *transport, options.on_refused);
  print_settings(settings);
  if (!ops.url().empty()) std::cout << "metrics on " << ops.url() << "/metrics\n";
  const bool tls = !options.tls_certificate.empty();
  if (grpc.is_on()) {
    const std::string url = url_of(grpc.address(), grpc.port(), tls);
    std::cout << "gRPC on " << url << "\n";
    log.note("gRPC", {{"url", url}});
  }
  std::cout << "listening on " << url_of(options.address, transport->port(), tls) << std::endl;
  log.note("listening", {{"address", options.address}, {"port", std::to_string(transport->port())}});
  wait_for_signal(signals);
  log.note("draining", {});
  server.set_draining();
  // Both at once: they have one time.
  auto calls =
      std::async(std::launch::async, [&] { return grpc.stop(settings.drain_timeout, kHandlerPatience); });
  const bool requests_ended = transport->stop(settings.drain_timeout, kHandlerPatience);
  const bool ended = calls.get() && requests_ended;
  server.stop();
  const bool ops_ended = ops.stop();
  // Nothing may be taken down under a handler that still runs. What was acknowledged is in the store already.
  if (!ended || !ops_ended) guard.leave();
  log.note("stopped", {});
  return 0;
}

}  // namespace

Action serve_command(CLI::App& app) {
  const auto arguments = add_settings_options(app);
  return [arguments](const GlobalOptions&) { return serve(*arguments); };
}

}  // namespace tensormill::cli
