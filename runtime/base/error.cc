#include "runtime/base/error.h"

#include <cerrno>
#include <cstring>

namespace tensormill {

const std::vector<ErrorCodeInfo>& all_error_codes() {
  static const std::vector<ErrorCodeInfo> rows = {
#define TM_ERROR_CODE(enumerator, name, status, grpc_code, exit_code, when) \
  {ErrorCode::enumerator, name, status, exit_code, when},
#include "runtime/base/error_codes.def"
#undef TM_ERROR_CODE
  };
  return rows;
}

const ErrorCodeInfo& error_code_info(ErrorCode code) { return all_error_codes()[static_cast<size_t>(code)]; }

ErrorCode error_code_from_name(std::string_view name) {
  for (const ErrorCodeInfo& row : all_error_codes()) {
    if (row.name == name) return row.code;
  }
  return ErrorCode::kInternal;
}

Error::Error(ErrorCode code, std::string message, std::vector<ErrorDetail> details)
    : code_(code), message_(std::move(message)), details_(std::move(details)) {}

void Error::add_context(std::string_view context) {
  message_.insert(0, ": ");
  message_.insert(0, context);
}

void throw_internal(const char* file, int line, const char* condition, const std::string& message) {
  std::string_view path = file;
  // Build folders differ from machine to machine; the message keeps the room-relative path only.
  for (std::string_view room :
       {"runtime/", "compiler/", "storage/", "api/", "server/", "config/", "tests/"}) {
    if (size_t at = path.rfind(room); at != std::string_view::npos) {
      path = path.substr(at);
      break;
    }
  }
  throw InternalError(std::string(path) + ":" + std::to_string(line) + ": " + message + " [" + condition +
                      "]");
}

void throw_errno(int error_number, std::string_view what) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  throw Error(full ? ErrorCode::kDiskFull : ErrorCode::kIo,
              std::string(what) + ": " + std::strerror(error_number));
}

}  // namespace tensormill
