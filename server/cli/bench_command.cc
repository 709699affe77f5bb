#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/npz/npz.h"
#include "server/cli/cli.h"
#include "server/cli/model_input.h"
#include "server/cli/terminal.h"
#include "server/load/bodies.h"
#include "server/load/http_client.h"
#include "server/load/load.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::cli {

namespace {

struct BenchArguments {
  std::string url;
  std::string deployment;
  std::string inputs;
  std::string input_shapes;
  std::string fill_mode = "random";
  uint64_t seed = 0;
  std::string protocol = "v2";
  std::vector<double> rates = {100};
  double duration = 10;
  int connections = 16;
  std::string arrival = "even";
  int timeout_ms = 30'000;
  int warmup = 10;
  std::string key_file;
  load::TlsOptions tls;
};

/// Where requests go: a server and one of its deployments.
struct Place {
  load::Url url;
  std::string deployment;
  std::string headers;   ///< whole lines
  load::TlsContext tls;  ///< none for http

  load::HttpClient client(const BenchArguments& arguments) const {
    return {url, std::chrono::milliseconds(arguments.timeout_ms), tls};
  }
  std::string address() const { return (url.tls ? "https://" : "http://") + url.authority(); }
};

bool is_plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  });
}

/// The key's line: of the file that is named, else of TENSORMILL_API_KEY; "" for none.
std::string key_header(const std::string& file) {
  const char* variable = std::getenv("TENSORMILL_API_KEY");
  std::string key = !file.empty() ? read_file(file) : variable == nullptr ? "" : variable;
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  if (key.empty()) return "";
  const auto is_bad = [](unsigned char c) { return c <= ' ' || c >= 0x7F; };
  if (std::any_of(key.begin(), key.end(), is_bad))
    throw Error(ErrorCode::kUsage, "the API key has characters that no key has");
  return "Authorization: Bearer " + key + "\r\n";
}

/// The deployment of --deployment, of the URL, or the only one of the server.
Place place_of(const BenchArguments& arguments) {
  Place place{load::parse_url(arguments.url), arguments.deployment, key_header(arguments.key_file), {}};
  if (place.url.tls) place.tls = load::tls_context(arguments.tls);
  for (const std::string prefix : {"/v1/deployments/", "/v2/models/"}) {
    if (!place.url.path.starts_with(prefix)) continue;
    if (place.deployment.empty()) place.deployment = place.url.path.substr(prefix.size());
    place.url.path.clear();
  }
  if (!place.url.path.empty()) {
    throw Error(ErrorCode::kUsage, arguments.url + ": write http://HOST:PORT, or with /v1/deployments/NAME");
  }
  if (place.deployment.empty()) {
    load::HttpClient client = place.client(arguments);
    const Json list = parse_json(client.get("/v1/deployments", place.headers));
    std::string names;
    for (const Json& one : list.at("items"))
      names += (names.empty() ? "" : ", ") + one.at("name").get<std::string>();
    if (list.at("items").size() != 1) {
      throw Error(ErrorCode::kUsage,
                  names.empty() ? "the server has no deployment" : "--deployment is needed: " + names);
    }
    place.deployment = names;
  }
  if (!is_plain(place.deployment))
    throw Error(ErrorCode::kUsage, "\"" + place.deployment + "\" is no deployment's name");
  return place;
}

/// Of the set's file, or filled as the deployment's inputs are.
std::vector<npz::NamedTensor> tensors_for(const BenchArguments& arguments, const Place& place) {
  if (!arguments.inputs.empty()) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(arguments.inputs);
    return in_context(arguments.inputs, [&] { return npz::read_npz(file->bytes()); });
  }
  load::HttpClient client = place.client(arguments);
  const Json described = parse_json(client.get("/v1/deployments/" + place.deployment, place.headers));
  const std::map<std::string, DimShape> given = parse_input_shapes(arguments.input_shapes);
  const services::FillMode mode = server::parse_fill_mode(arguments.fill_mode);
  std::vector<npz::NamedTensor> tensors;
  for (const Json& input : described.at("inputs")) {
    const auto name = input.at("name").get<std::string>();
    const std::optional<DType> dtype = dtype_from_long_name(input.at("dtype").get<std::string>());
    if (!dtype) throw Error(ErrorCode::kNotSupported, "input \"" + name + "\" has a type that is not known");
    DimShape shape = dims_from_json(input.at("shape"));
    if (const auto found = given.find(name); found != given.end()) {
      shape = found->second;
    } else if (!shape.empty() && std::holds_alternative<std::string>(shape.front())) {
      shape.front() = Dim(int64_t{1});
    }
    tensors.push_back({name, in_context("input \"" + name + "\"", [&] {
                         return server::filled_tensor(*dtype, concrete_shape(shape), mode,
                                                      arguments.seed + tensors.size());
                       })});
  }
  if (tensors.empty()) throw Error(ErrorCode::kUnavailable, place.deployment + " is not ready");
  return tensors;
}

/// "" for an answer of 200.
std::string outcome_of(const load::Answer& answer) {
  if (answer.status == 0) return answer.failure;
  return answer.status == 200 ? "" : std::to_string(answer.status);
}

/// Fails with the server's words where it does not take the request at all.
void warm_up(const BenchArguments& arguments, const Place& place, const std::string& wire) {
  load::HttpClient client = place.client(arguments);
  for (int i = 0; i < std::max(1, arguments.warmup); ++i) {
    const load::Answer answer = client.send(wire);
    if (answer.status == 200) continue;
    const std::string what = place.address() + " ";
    if (answer.status == 0) throw Error(ErrorCode::kUnavailable, what + load::why_lost(answer));
    throw Error(ErrorCode::kInvalidRequest,
                what + "answers " + std::to_string(answer.status) + ": " + answer.body.substr(0, 500));
  }
}

void print_times(const char* name, const Json& times) {
  std::cout << "  " << std::left << std::setw(28) << name << std::right << std::fixed << std::setprecision(3);
  for (const char* key : {"p50", "p90", "p95", "p99", "p99_9", "max"}) {
    if (times.is_null()) {
      std::cout << std::setw(11) << "-";
    } else {
      std::cout << std::setw(11) << times[key].get<double>();
    }
  }
  std::cout << "\n";
}

void print_rate(const Json& row) {
  std::ostringstream title;
  title << row["offered_rate"].get<double>() << " requests/s";
  std::cout << coloured(title.str(), Colour::kBold, Stream::kOut) << ", " << row["arrival"].get<std::string>()
            << ": " << row["answered"] << " of " << row["requests"] << " answered, " << std::fixed
            << std::setprecision(1) << row["rate"].get<double>() << " a second";
  for (const auto& [word, count] : row["failed"].items())
    std::cout << ", " << coloured(word + ": " + count.dump(), Colour::kRed, Stream::kOut);
  std::cout << "\n  " << std::left << std::setw(28) << "ms" << std::right;
  for (const char* title : {"p50", "p90", "p95", "p99", "p99.9", "max"}) std::cout << std::setw(11) << title;
  std::cout << "\n";
  print_times("from when it was to be sent", row["latency_ms"]);
  print_times("from when it was sent", row["service_ms"]);
  if (const auto late = row["late"].get<int64_t>(); late > 0) {
    std::cout << "  " << late
              << " were sent late: all connections waited for answers, or this machine was busy\n";
  }
  std::cout << std::flush;
}

Json measure_rate(const BenchArguments& arguments, const Place& place, const std::string& wire, double rate) {
  const std::vector<load::Nanoseconds> schedule =
      arguments.arrival == "even" ? load::even_schedule(rate, arguments.duration)
                                  : load::poisson_schedule(rate, arguments.duration, arguments.seed);
  std::vector<load::Send> connections;
  for (int i = 0; i < arguments.connections; ++i) {
    const auto client = std::make_shared<load::HttpClient>(place.client(arguments));
    connections.emplace_back([client, &wire] { return outcome_of(client->send(wire)); });
  }
  const std::unique_ptr<load::Clock> clock = load::system_clock();
  Json row = load::load_json(load::run_load(schedule, connections, *clock));
  row["offered_rate"] = rate;
  row["arrival"] = arguments.arrival;
  row["connections"] = arguments.connections;
  return row;
}

int bench(const BenchArguments& arguments, const GlobalOptions& globals) {
  // TLS writes to sockets that a peer may have closed.
  ::signal(SIGPIPE, SIG_IGN);
  const Place place = place_of(arguments);
  const std::vector<npz::NamedTensor> tensors = tensors_for(arguments, place);
  const auto request = arguments.protocol == "npz" ? &load::npz_request : &load::v2_request;
  const std::string wire = request(place.url, place.deployment, tensors, place.headers);
  for (const double rate : arguments.rates) load::check_schedule(rate, arguments.duration);
  warm_up(arguments, place, wire);
  Json rows = Json::array();
  bool has_answers = false;
  ProgressLine progress;
  for (const double rate : arguments.rates) {
    progress.show("rates", static_cast<int64_t>(rows.size()), static_cast<int64_t>(arguments.rates.size()));
    rows.push_back(measure_rate(arguments, place, wire, rate));
    progress.clear();
    has_answers = has_answers || rows.back()["answered"].get<int64_t>() > 0;
    if (!globals.json) print_rate(rows.back());
  }
  if (globals.json) {
    print_json(Json{{"url", place.address()},
                    {"deployment", place.deployment},
                    {"protocol", arguments.protocol},
                    {"rates", rows}});
  }
  return has_answers ? 0 : error_code_info(ErrorCode::kUnavailable).exit_code;
}

}  // namespace

Action bench_command(CLI::App& app) {
  const auto arguments = std::make_shared<BenchArguments>();
  app.add_option("URL", arguments->url, "http(s)://HOST:PORT, also with /v1/deployments/NAME")->required();
  app.add_option("--deployment", arguments->deployment, "default: the URL's, or the only one there is");
  app.add_option("--rate", arguments->rates, "requests a second: A,B,...; default 100")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1e-3, 1e6));
  app.add_option("--duration", arguments->duration, "seconds at each rate; default 10")
      ->check(CLI::Range(1e-3, 86400.0));
  app.add_option("--connections", arguments->connections, "at once; default 16")->check(CLI::Range(1, 1024));
  app.add_option("--arrival", arguments->arrival, "even, or poisson: as independent clients send")
      ->check(CLI::IsMember({"even", "poisson"}));
  app.add_option("--protocol", arguments->protocol, "v2: binary tensors; npz")
      ->check(CLI::IsMember({"v2", "npz"}));
  app.add_option("-i,--inputs", arguments->inputs, "NPZ with the inputs; without it they are filled");
  app.add_option("--input-shapes", arguments->input_shapes, "of inputs that are filled");
  app.add_option("--fill-mode", arguments->fill_mode, "zeros, ones or random")
      ->check(CLI::IsMember({"zeros", "ones", "random"}));
  app.add_option("--seed", arguments->seed, "of the fill and of poisson")->check(seed_number());
  app.add_option("--timeout", arguments->timeout_ms, "milliseconds for an answer; default 30000")
      ->check(CLI::Range(1, 3'600'000));
  app.add_option("--warmup", arguments->warmup, "requests before, one after the other")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--key-file", arguments->key_file, "file with the API key; default: TENSORMILL_API_KEY");
  CLI::Option* ca = app.add_option("--ca", arguments->tls.ca,
                                   "PEM file of certificates that are trusted; default: the system's");
  app.add_flag("--insecure", arguments->tls.takes_anybody, "check no certificate")->excludes(ca);
  return [arguments](const GlobalOptions& globals) { return bench(*arguments, globals); };
}

}  // namespace tensormill::cli
