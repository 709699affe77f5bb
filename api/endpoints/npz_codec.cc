#include "api/endpoints/npz_codec.h"

#include "runtime/base/error.h"

namespace tensormill::endpoints {

services::NamedTensors decode_npz(std::string_view, uint64_t) {
  throw Error(ErrorCode::kNotSupported, "NPZ is not supported yet");
}

std::string encode_npz(const services::NamedTensors&) {
  throw Error(ErrorCode::kNotSupported, "NPZ is not supported yet");
}

}  // namespace tensormill::endpoints
