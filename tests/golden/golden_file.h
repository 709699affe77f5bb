/// Golden files: what goes into a pass and what comes out, as text.
///
///     # what it shows
///     pass: sink_casts
///     ---- before
///     …
///     ---- after
///     …
///
/// Thread-safety: values and pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tensormill::golden {

struct GoldenFile {
  std::string path;
  std::string head;                             ///< comments and settings, as they stand
  std::map<std::string, std::string> settings;  ///< "pass" -> "sink_casts"
  std::string before, after;
};

/// Throws Error(kInvalidArgument) naming the file and what is missing.
GoldenFile read_golden(const std::string& path);
/// With another `after`.
void write_golden(const GoldenFile& file, const std::string& after);
/// The files of a folder beside this one, sorted.
std::vector<std::string> golden_files(const std::string& folder);

/// The program was called with --update: results are written instead of compared.
bool is_updating();

/// Compares, or updates the file.
void expect_golden(const GoldenFile& file, const std::string& actual);

}  // namespace tensormill::golden
