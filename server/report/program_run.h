/// A run of this program by itself, with what it said and what it took.
/// Thread-safety: pure functions over processes; many may run at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tensormill::report {

struct ProgramRun {
  int exit_code = 0;  ///< 128 and the signal's number where one ended it
  std::string out;
  std::string err;
  double wall_s = 0;
  double cpu_s = 0;
  int64_t max_resident_bytes = 0;
};

inline constexpr const char* kOwnProgram = "/proc/self/exe";

/// `program` with these arguments, its output in memory files; waits for its end. Throws Error(kIo) where it
/// cannot be started, Error(kTooLarge) for more than 256 MiB of output.
ProgramRun run_program(const std::string& program, const std::vector<std::string>& arguments);
}  // namespace tensormill::report
