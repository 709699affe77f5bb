/// `tensormill run … --on LABELS --server URL`: a package of a server's runs on one of its workers.
/// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/cli/cli.h"

namespace tensormill::cli {

struct RunOnArguments {
  std::string on;  ///< labels of the worker; "": the package runs here
  std::string server;
  std::string key_file;
  std::string ca_file;
  std::vector<std::string> pins;
};

/// What is run.
struct RunOnRequest {
  std::string package;  ///< id, or a file whose package the server has
  std::string input;    ///< NPZ; "" where inputs are filled
  std::string output;   ///< NPZ; "" for none
  std::string fill_mode;
  uint64_t seed = 0;
};

/// `what` says what --on does.
void add_run_on_options(CLI::App& app, RunOnArguments& arguments, const std::string& what);
/// The milliseconds of the run; the outputs are in the file then. Throws what the server says.
std::vector<double> run_on(const RunOnArguments& arguments, const RunOnRequest& request);

}  // namespace tensormill::cli
