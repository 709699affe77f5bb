// tensormill worker
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>

#include "api/http/labels.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/names.h"
#include "server/cli/bell.h"
#include "server/cli/cli.h"
#include "server/cli/link_options.h"
#include "server/cli/model_input.h"
#include "server/cli/settings_input.h"
#include "server/cli/stop_signals.h"
#include "server/services/jobs/carried_work.h"
#include "server/worker/carry.h"
#include "server/worker/worker.h"

namespace tensormill::cli {

namespace {

/// Seconds for an item to take away.
constexpr int kTakeWait = 20;

struct WorkerArguments {
  std::string server;
  std::string key_file;
  std::string ca_file;
  std::vector<std::string> pins;
  std::string name;
  std::string labels;
  std::string verbs;
  std::string signing_key;
  std::string data = "tensormill-worker";
  uint64_t cache_bytes = uint64_t{16} << 30;
  int slots = 1;
  std::string take, batch, result;
  int hold_s = 86'400;
  SettingsArguments settings;
};

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) throw_errno(errno, "the machine has no name");
  return name.data();
}

std::vector<std::string> verbs_of(const std::string& text) {
  std::vector<std::string> verbs = split_list(text);
  for (const std::string& verb : verbs) {
    const auto& known = worker::known_verbs();
    if (std::find(known.begin(), known.end(), verb) == known.end())
      throw Error(ErrorCode::kUsage,
                  "--verbs " + verb + ": expected compile, benchmark, run, verify or measure");
  }
  if (verbs.empty()) throw Error(ErrorCode::kUsage, "--verbs names none");
  return verbs;
}

worker::WorkerOptions options_of(const WorkerArguments& arguments) {
  worker::WorkerOptions options;
  options.server = link_options(arguments.server, arguments.key_file, arguments.ca_file, arguments.pins);
  options.name = arguments.name.empty() ? host_name() : arguments.name;
  if (!is_name(options.name))
    throw Error(ErrorCode::kUsage, "\"" + options.name + "\" is no name of a worker; give one with --name");
  try {
    options.labels = http::parse_labels(arguments.labels);
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, "--labels: " + error.message());
  }
  options.verbs = verbs_of(arguments.verbs.empty() ? "compile" : arguments.verbs);
  const bool compiles =
      std::find(options.verbs.begin(), options.verbs.end(), "compile") != options.verbs.end();
  if (compiles && arguments.signing_key.empty())
    throw Error(
        ErrorCode::kUsage,
        "a worker that compiles signs what it makes: --signing-key FILE, an Ed25519 key whose public half "
        "is in the server's packages.trusted_keys");
  options.signing_key = arguments.signing_key;
  options.data = arguments.data;
  options.cache_bytes = arguments.cache_bytes;
  options.slots = arguments.slots;
  const auto mutex = std::make_shared<std::mutex>();
  options.tell = [mutex](const std::string& line) {
    const std::lock_guard lock(*mutex);
    std::cerr << line << std::endl;
  };
  return options;
}

/// Returns when one of the two is readable: whether it is the first.
bool wait_for(int first, int second) {
  std::array<pollfd, 2> watched = {{{first, POLLIN, 0}, {second, POLLIN, 0}}};
  while (::poll(watched.data(), watched.size(), -1) < 0) {
    if (errno != EINTR) throw_errno(errno, "cannot wait for signals");
  }
  return watched[0].revents != 0;
}

void take_signal(const FileDescriptor& signals) {
  signalfd_siginfo info{};
  if (::read(signals.get(), &info, sizeof info) != sizeof info) throw_errno(errno, "cannot read a signal");
}

/// One item into a file, for a machine that does not reach the server.
int take(WorkerArguments arguments) {
  if (arguments.verbs.empty()) arguments.verbs = "measure,benchmark,run,verify";
  const std::vector<std::string> verbs = verbs_of(arguments.verbs);
  if (std::find(verbs.begin(), verbs.end(), "compile") != verbs.end())
    throw Error(ErrorCode::kUsage,
                "--take: who compiles asks the server for records, so it cannot be done offline");
  check_output("--take", arguments.take);
  const worker::WorkerOptions options = options_of(arguments);
  const config::Settings settings = settings_of(arguments.settings);
  worker::ServerLink link(options.server);
  const std::string lease = worker::take_item(
      link,
      {options.name, options.verbs, options.labels, arguments.hold_s, settings.max_model_bytes, kTakeWait},
      arguments.take);
  std::cout << "lease " << lease << " is in " << arguments.take << std::endl;
  return 0;
}

/// What the file of an item says of how it is done.
void take_from_item(WorkerArguments& arguments) {
  if (arguments.result.empty() || arguments.signing_key.empty())
    throw Error(ErrorCode::kUsage, "--batch needs --result FILE and --signing-key FILE: results are signed");
  check_output("--result", arguments.result);
  const auto file = in_context("--batch", [&] { return MappedFile::open(arguments.batch); });
  const server::CarriedItem item =
      in_context("--batch " + arguments.batch, [&] { return server::read_item(file->bytes()); });
  arguments.server = item.server;
  const Json verb = item.lease.value("verb", Json());
  arguments.verbs = verb.is_string() ? verb.get<std::string>() : "";
}

int work(WorkerArguments arguments) {
  if (!arguments.batch.empty()) {
    take_from_item(arguments);
  } else if (arguments.server.empty()) {
    throw Error(ErrorCode::kUsage, "--server is required");
  }
  if (!arguments.take.empty()) return take(std::move(arguments));
  worker::WorkerOptions options = options_of(arguments);
  options.item = arguments.batch;
  options.result = arguments.result;
  const config::Settings settings = settings_of(arguments.settings);
  const FileDescriptor signals = stop_signals();
  const Bell refused;
  const auto tell = options.tell;
  if (arguments.batch.empty()) tell("worker " + options.name + " asks " + options.server.url + " for work");
  worker::Worker worker(std::move(options), settings, [&refused] { refused.ring(); });
  if (wait_for(signals.get(), refused.fd())) {
    take_signal(signals);
    tell("no further work; a second signal gives back what runs");
    const Bell drained;
    const std::jthread drain([&] {
      worker.drain();
      drained.ring();
    });
    if (wait_for(signals.get(), drained.fd())) worker.stop();
    return 0;
  }
  worker.stop();
  if (!arguments.batch.empty() && worker.refusal().empty()) return 0;
  throw Error(ErrorCode::kForbidden, worker.refusal());
}

}  // namespace

Action worker_command(CLI::App& app) {
  const auto arguments = std::make_shared<WorkerArguments>();
  app.add_option("--server", arguments->server, "https://HOST[:PORT]; http:// on this machine alone");
  app.add_option("--key-file", arguments->key_file,
                 "file whose first line is an API key with worker:compile or worker:measure");
  app.add_option("--ca", arguments->ca_file,
                 "PEM file of the authorities that the server's certificate is checked with");
  app.add_option("--pin", arguments->pins,
                 "sha256:HEX of a public key (SubjectPublicKeyInfo) that is the server's; may be repeated");
  app.add_option("--name", arguments->name, "what the worker is called; default: the machine's name");
  app.add_option("--labels", arguments->labels,
                 "board=rpi4,...: of those that the key grants; default: all of them");
  app.add_option("--verbs", arguments->verbs,
                 "compile,benchmark,run,verify,measure: what it does; default: compile");
  app.add_option("--signing-key", arguments->signing_key, "PEM file of the Ed25519 key that signs packages");
  app.add_option("--data", arguments->data, "folder of the cache and of what runs");
  app.add_option("--cache-bytes", arguments->cache_bytes, "disk that models and packages may take")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--slots", arguments->slots, "compile jobs side by side")->check(CLI::Range(1, 256));
  app.add_option(
      "--take", arguments->take,
      "leases one item, writes it to this file for a machine that does not reach the server, and ends");
  app.add_option("--hold", arguments->hold_s,
                 "seconds that the server waits for what comes of it; default: a day")
      ->check(CLI::Range(60, 7 * 86'400));
  app.add_option("--batch", arguments->batch, "does the item of this file, asks no server, and ends");
  app.add_option("--result", arguments->result,
                 "with --batch: file for what comes of it, signed; tensormill import-results brings it back");
  app.add_option("--config", arguments->settings.config,
                 "TOML file of settings: jobs, children, import, run");
  app.add_option("--set", arguments->settings.settings, "NAME=VALUE of any setting; may be repeated");
  return [arguments](const GlobalOptions&) { return work(*arguments); };
}

}  // namespace tensormill::cli
