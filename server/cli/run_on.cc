#include "server/cli/run_on.h"

#include "api/http/labels.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/npz/npz.h"
#include "runtime/package/package_reader.h"
#include "server/cli/link_options.h"
#include "server/cli/model_input.h"
#include "server/worker/server_link.h"

namespace tensormill::cli {

namespace {

/// "a=b,c=d" as a value of a query.
std::string in_query(const std::string& labels) {
  std::string text;
  for (const char c : labels) {
    if (c == '=') {
      text += "%3D";
    } else if (c == ',') {
      text += "%2C";
    } else {
      text += c;
    }
  }
  return text;
}

std::string package_id(const std::string& package) {
  if (Digest::parse(package)) return package;
  return in_context(package, [&] { return package::Package::open(package)->id().text(); });
}

}  // namespace

void add_run_on_options(CLI::App& app, RunOnArguments& arguments, const std::string& what) {
  app.add_option("--on", arguments.on, "board=rpi4,...: " + what);
  app.add_option("--server", arguments.server,
                 "with --on: https://HOST[:PORT]; http:// on this machine alone");
  app.add_option("--key-file", arguments.key_file, "with --on: file whose first line is an API key");
  app.add_option("--ca", arguments.ca_file, "with --on: PEM file of the server's authorities");
  app.add_option("--pin", arguments.pins, "with --on: sha256:HEX of the server's public key");
}

std::vector<double> run_on(const RunOnArguments& arguments, const RunOnRequest& request) {
  if (arguments.server.empty()) throw Error(ErrorCode::kUsage, "--on needs --server");
  const std::string on = in_query(http::join_labels(http::parse_labels(arguments.on)));
  worker::ServerLink link(
      link_options(arguments.server, arguments.key_file, arguments.ca_file, arguments.pins));
  std::string path = "/v1/packages/" + package_id(request.package) + "/run?on=" + on;
  if (request.input.empty())
    path += "&fill_mode=" + request.fill_mode + "&seed=" + std::to_string(request.seed);
  const auto input = request.input.empty() ? nullptr : MappedFile::open(request.input);
  const worker::ServerLink::Bytes answer =
      link.exchange(path, input ? input->text() : std::string_view(), "application/x-npz");
  if (!request.output.empty()) write_file(request.output, answer.bytes);
  return answer.runs_ms;
}

}  // namespace tensormill::cli
