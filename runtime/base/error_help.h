/// What people read of an error code beside the line of error_codes.def: why it comes and what to do.
/// Thread-safety: pure functions over a constant table.
#pragma once

#include <string_view>

#include "runtime/base/error.h"

namespace tensormill {

/// A row of error_help.def, in whole sentences.
struct ErrorHelp {
  std::string_view why;
  std::string_view what_to_do;
};

ErrorHelp error_help(ErrorCode code);

}  // namespace tensormill
