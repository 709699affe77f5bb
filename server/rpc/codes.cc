#include "server/rpc/codes.h"

namespace tensormill::rpc {

// Without a default: the compiler names the row of error_codes.def that is missing here.
Code rpc_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUsage:
    case ErrorCode::kInvalidJson:
    case ErrorCode::kInvalidRequest:
    case ErrorCode::kInvalidNpz:
    case ErrorCode::kInvalidTensor:
    case ErrorCode::kInvalidModel:
    case ErrorCode::kInvalidPackage:
    case ErrorCode::kInvalidTarget:
    case ErrorCode::kInvalidRecords:
    case ErrorCode::kInvalidImage:
    case ErrorCode::kShapeRequired:
    case ErrorCode::kTensorData:
    case ErrorCode::kUnsupportedMediaType:
    case ErrorCode::kDigestMismatch:
      return Code::kInvalidArgument;
    case ErrorCode::kRangeNotSatisfiable:
      return Code::kOutOfRange;
    case ErrorCode::kOperatorNotImplemented:
    case ErrorCode::kOperatorAttributeNotImplemented:
    case ErrorCode::kNotSupported:
    case ErrorCode::kCpuFeatureMissing:
    case ErrorCode::kMethodNotAllowed:
      return Code::kUnimplemented;
    case ErrorCode::kUnauthorized:
      return Code::kUnauthenticated;
    case ErrorCode::kForbidden:
    case ErrorCode::kForeignCode:
    case ErrorCode::kMisdirected:
      return Code::kPermissionDenied;
    case ErrorCode::kNotFound:
      return Code::kNotFound;
    case ErrorCode::kNameTaken:
      return Code::kAlreadyExists;
    case ErrorCode::kInUse:
    case ErrorCode::kConflict:
    case ErrorCode::kPreconditionFailed:
      return Code::kFailedPrecondition;
    case ErrorCode::kTooLarge:
    case ErrorCode::kQuotaExceeded:
    case ErrorCode::kHeadersTooLarge:
    case ErrorCode::kDiskFull:
    case ErrorCode::kMemoryBudget:
      return Code::kResourceExhausted;
    case ErrorCode::kCancelled:
      return Code::kCancelled;
    case ErrorCode::kRequestTimeout:
    case ErrorCode::kDeadlineExceeded:
      return Code::kDeadlineExceeded;
    case ErrorCode::kUnavailable:
      return Code::kUnavailable;
    case ErrorCode::kCorrupt:
      return Code::kDataLoss;
    case ErrorCode::kWrongAnswer:
    case ErrorCode::kIo:
    case ErrorCode::kJobFailed:
    case ErrorCode::kInternal:
      return Code::kInternal;
  }
  return Code::kUnknown;
}

}  // namespace tensormill::rpc
