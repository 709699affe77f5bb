#include "server/rpc/codes.h"

namespace tensormill::rpc {

Code rpc_code(ErrorCode code) {
  static constexpr Code kCodes[] = {
#define TM_ERROR_CODE(enumerator, name, status, grpc_code, exit_code, when) Code::grpc_code,
#include "runtime/base/error_codes.def"
#undef TM_ERROR_CODE
  };
  return kCodes[static_cast<size_t>(code)];
}

}  // namespace tensormill::rpc
