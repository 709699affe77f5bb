/// Errors of two kinds, never mixed. `Error` is what a user can cause and carries a code of the closed list
/// in error_codes.def, a message (lower case, no full stop, both numbers) and optional details; each layer
/// adds its context in front, so that the message reads as a path. `InternalError` is a bug and is caught
/// only in CompileJob::run, the request dispatcher and the CLI's main.
/// Thread-safety: values, no shared state.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace tensormill {

enum class ErrorCode {
#define TM_ERROR_CODE(enumerator, name, status, grpc_code, exit_code, when) enumerator,
#include "runtime/base/error_codes.def"
#undef TM_ERROR_CODE
};

/// One row of error_codes.def.
struct ErrorCodeInfo {
  ErrorCode code;
  std::string_view name;
  int http_status;
  int exit_code;
  std::string_view when;
};

/// The row of `code`.
const ErrorCodeInfo& error_code_info(ErrorCode code);
/// All rows, in the table's order.
const std::vector<ErrorCodeInfo>& all_error_codes();
/// The code with wire name `name`; kInternal when there is none.
ErrorCode error_code_from_name(std::string_view name);

/// A detail of an error: a JSON pointer (or a node, option, tensor name) and what is wrong there.
struct ErrorDetail {
  std::string pointer;
  std::string detail;
};

class Error : public std::exception {
public:
  Error(ErrorCode code, std::string message, std::vector<ErrorDetail> details = {});
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::vector<ErrorDetail>& details() const { return details_; }
  /// Machine-readable extra (JSON text, may be empty), such as the readable part of an unsupported model.
  const std::string& extra_json() const { return extra_json_; }
  void set_extra_json(std::string text) { extra_json_ = std::move(text); }
  /// Puts `context + ": "` before the message: the path from the outside in.
  void add_context(std::string_view context);

private:
  ErrorCode code_;
  std::string message_;
  std::vector<ErrorDetail> details_;
  std::string extra_json_;
};

class InternalError : public std::exception {
public:
  explicit InternalError(std::string message) : message_("internal error: " + std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

private:
  std::string message_;
};

[[noreturn]] void throw_internal(const char* file, int line, const char* condition,
                                 const std::string& message);
/// Error of kind kIo (kDiskFull for ENOSPC and EDQUOT) from errno value `error_number`.
[[noreturn]] void throw_errno(int error_number, std::string_view what);

}  // namespace tensormill

/// Checks what only a bug can break. `message` (a std::string expression) is evaluated on failure only.
#define TM_CHECK(condition, message)                                                           \
  do {                                                                                         \
    if (!(condition)) ::tensormill::throw_internal(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
