/// Errors as responses: application/problem+json (RFC 9457) with our code, request id and details.
/// Thread-safety: pure functions, but for make_request_id, which draws from the system's random source.
#pragma once

#include <string>
#include <string_view>

#include "api/http/message.h"
#include "runtime/base/error.h"
#include "runtime/base/json_fwd.h"

namespace tensormill::http {

/// Which protocol an error is reported in.
enum class Dialect {
  kNative,     ///< statuses of error_codes.def
  kInference,  ///< under /v2: 400 for 400, 415 and 422, 501 for what is not supported, and a member "error"
};

/// kInference for targets under /v2.
Dialect dialect_of(std::string_view target);

/// The response that tells `error`: {type,title,status,detail,code,request_id,errors?} and the members of the
/// error's extra JSON object as they are. Adds Retry-After to 429 and 503, WWW-Authenticate to 401.
Response problem_response(const Error& error, std::string_view request_id,
                          Dialect dialect = Dialect::kNative);

/// The error that a problem tells, or that of a job: {"code","detail","errors"?}. An unknown code is
/// kInternal. Throws nlohmann's exceptions for another form.
Error error_of_problem(const Json& problem);

/// Status under `dialect` of an error with code `code`.
int problem_status(ErrorCode code, Dialect dialect);

/// [A-Za-z0-9._-]{1,64}
bool is_request_id(std::string_view text);
/// The X-Request-Id of the client when it is valid, else a new one.
std::string request_id_for(const Headers& headers);
std::string make_request_id();

}  // namespace tensormill::http
