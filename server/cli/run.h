/// The whole command line, for the program's main: no header of a library comes with it.
#pragma once

namespace tensormill::cli {

/// Parses and runs; the only place of the CLI that catches InternalError. Returns the exit code, of those
/// that cli.h lists. Called once, by the main thread.
int run(int argc, char** argv);

}  // namespace tensormill::cli
