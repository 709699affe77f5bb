#include "runtime/base/error_help.h"

namespace tensormill {

// A switch: the compiler names a code that has no row, and a row that stands twice.
ErrorHelp error_help(ErrorCode code) {
  switch (code) {
#define TM_ERROR_HELP(enumerator, why, what_to_do) \
  case ErrorCode::enumerator:                      \
    return {why, what_to_do};
#include "runtime/base/error_help.def"
#undef TM_ERROR_HELP
  }
  throw InternalError("error code " + std::to_string(static_cast<int>(code)) + " is none");
}

}  // namespace tensormill
