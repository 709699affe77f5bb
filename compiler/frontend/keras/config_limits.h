/// How large a configuration may be. Thread-safety: constants.
#pragma once

#include "runtime/base/json_reader.h"

namespace tensormill::frontend::keras {

inline constexpr JsonLimits kConfigLimits = {.bytes = uint64_t{64} << 20,
                                             .token_bytes = uint64_t{16} << 20,
                                             .values = uint64_t{1} << 21,
                                             .depth = 128};

}  // namespace tensormill::frontend::keras
