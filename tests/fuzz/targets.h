/// Fuzz targets: one function for each parser that strangers reach. A target reads the bytes as its parser
/// does. An Error is a fine answer; any other exception, a sanitizer's report or a crash is a finding. Where
/// a text form can be printed, a target also checks that what it read prints and reads again as the same.
/// Thread-safety: one at a time.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill::fuzz {

using Target = void (*)(std::string_view bytes);

#define TM_FUZZ(name, meaning, files) void fuzz_##name(std::string_view bytes);
#include "tests/fuzz/targets.def"
#undef TM_FUZZ

struct TargetRow {
  std::string_view name;
  Target run;
};
/// The rows of targets.def.
const std::vector<TargetRow>& all_targets();

/// An Error must be the input's and have words: InternalError otherwise.
void check_error(const Error& error);

/// Reads in one way and goes on after an Error; everything else passes through.
template <typename Read>
void attempt(Read read) {
  try {
    read();
  } catch (const Error& error) {
    check_error(error);
  }
}

}  // namespace tensormill::fuzz
