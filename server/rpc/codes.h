/// gRPC's codes, and those of errors (a column of error_codes.def). Thread-safety: pure functions.
#pragma once

#include "runtime/base/error.h"

namespace tensormill::rpc {

/// gRPC's status codes, by their numbers on the wire.
enum class Code {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// What a call fails with where the request of HTTP in whose place it stands fails with `code`.
Code rpc_code(ErrorCode code);

}  // namespace tensormill::rpc
