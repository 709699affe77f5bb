// tensormill import-results
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/cli/cli.h"
#include "server/cli/link_options.h"
#include "server/worker/server_link.h"

namespace tensormill::cli {

namespace {

struct ImportResultsArguments {
  std::vector<std::string> files;
  std::string server;
  std::string key_file;
  std::string ca_file;
  std::vector<std::string> pins;
};

int import_results(const ImportResultsArguments& arguments) {
  worker::ServerLink link(
      link_options(arguments.server, arguments.key_file, arguments.ca_file, arguments.pins));
  for (const std::string& path : arguments.files) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) throw_errno(errno, "cannot open " + path);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) throw_errno(errno, "cannot read " + path);
    if (status.st_size == 0) throw Error(ErrorCode::kInvalidRequest, path + " is empty");
    try {
      link.post_file("/v1/workers/results", file.get(), static_cast<uint64_t>(status.st_size));
    } catch (Error& error) {
      error.add_context(path);
      throw;
    }
    std::cout << path << ": taken" << std::endl;
  }
  return 0;
}

}  // namespace

Action import_results_command(CLI::App& app) {
  const auto arguments = std::make_shared<ImportResultsArguments>();
  app.add_option("RESULT", arguments->files, "files that tensormill worker --batch … --result made")
      ->required();
  app.add_option("--server", arguments->server, "https://HOST[:PORT]; http:// on this machine alone")
      ->required();
  app.add_option("--key-file", arguments->key_file, "file whose first line is an API key that may write");
  app.add_option("--ca", arguments->ca_file, "PEM file of the server's authorities");
  app.add_option("--pin", arguments->pins, "sha256:HEX of the server's public key");
  return [arguments](const GlobalOptions&) { return import_results(*arguments); };
}

}  // namespace tensormill::cli
