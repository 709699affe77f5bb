#include "server/rpc/codes.h"

#include <gtest/gtest.h>

namespace tensormill::rpc {
namespace {

/// The codes that a client may take for what HTTP's status says.
bool fits(int status, Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return status == 400 || status == 415 || status == 422;
    case Code::kOutOfRange:
      return status == 416;
    case Code::kUnimplemented:
      return status == 405 || status == 422;
    case Code::kUnauthenticated:
      return status == 401;
    case Code::kPermissionDenied:
      return status == 403 || status == 421;
    case Code::kNotFound:
      return status == 404;
    case Code::kAlreadyExists:
      return status == 409;
    case Code::kFailedPrecondition:
      return status == 409 || status == 412;
    case Code::kCancelled:
      return status == 409;
    case Code::kResourceExhausted:
      return status == 413 || status == 429 || status == 431 || status == 507 || status == 422;
    case Code::kDeadlineExceeded:
      return status == 408 || status == 504;
    case Code::kUnavailable:
      return status == 503;
    case Code::kDataLoss:
      return status == 500;
    case Code::kInternal:
      return status == 500 || status == 422;
    case Code::kOk:
    case Code::kUnknown:
    case Code::kAborted:
      return false;
  }
  return false;
}

TEST(RpcCodes, EachErrorHasTheCodeThatItsStatusMeans) {
  for (const ErrorCodeInfo& row : all_error_codes()) {
    EXPECT_TRUE(fits(row.http_status, rpc_code(row.code)))
        << row.name << " is " << row.http_status << " and code " << static_cast<int>(rpc_code(row.code));
  }
}

TEST(RpcCodes, ClientsTryAgainWhatMayBeWellLater) {
  // What gRPC's clients repeat by themselves, and nothing else is.
  for (const ErrorCodeInfo& row : all_error_codes()) {
    EXPECT_EQ(rpc_code(row.code) == Code::kUnavailable, row.http_status == 503) << row.name;
  }
}

}  // namespace
}  // namespace tensormill::rpc
