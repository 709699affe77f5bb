/// FlexBuffers, which custom operators keep their options in, as JSON values: maps, vectors, numbers, texts;
/// blobs are texts. The library's verifier goes over the bytes first. Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "runtime/base/json_fwd.h"

namespace tensormill::frontend::wire {

/// Throws Error(kInvalidModel) for bytes that are none, more than 100,000 values or 32 levels: a buffer may
/// name a part of it many times.
Json flexbuffer_to_json(std::string_view bytes);

}  // namespace tensormill::frontend::wire
