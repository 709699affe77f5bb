/// Errors as JSON between processes and in rows of jobs: {"code","message","details"?,"extra"?}. What clients
/// see is api/http/problem.h. Thread-safety: pure functions.
#pragma once

#include <string>

#include "runtime/base/error.h"
#include "runtime/base/json_fwd.h"

namespace tensormill {

/// One line. Names from a stranger's model may not be UTF-8; such bytes become U+FFFD.
std::string error_to_json(const Error& error);
/// What error_to_json gives; an unknown code is kInternal. Throws nlohmann's exceptions for another form.
Error error_from_json(const Json& json);

}  // namespace tensormill
