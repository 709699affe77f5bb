/// The command line of `tensormill`: commands.def is the table of commands, each in a file of its own.
/// Exit codes: 0 done, 2 wrong command line, 3 wrong input, 4 not supported, 5 internal error. Errors go to
/// stderr as one line, `error: …`; with --json also to stdout as an object.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace tensormill::cli {

/// Options that every command has.
struct GlobalOptions {
  bool json = false;
  int verbosity = 0;
};

/// What a command does once its options are parsed; returns the exit code, or throws Error.
using Action = std::function<int(const GlobalOptions& globals)>;

/// Adds the command's options to `app` and returns its action.
#define TM_COMMAND(function, name, doc) Action function(CLI::App& app);
#include "server/cli/commands.def"
#undef TM_COMMAND

/// A seed: a whole number from 0 to 2^63 - 1. CLI11 itself takes what 64 bits do not hold for the largest
/// number that they do.
CLI::Validator seed_number();

}  // namespace tensormill::cli
