/// Which requests may run on the thread that reads them: inferences whose body costs next to nothing to read.
/// Thread-safety: pure function.
#pragma once

#include <string>
#include <string_view>

#include "api/http/message.h"

namespace tensormill::endpoints {

/// What is parsed on a thread that others wait for.
inline constexpr size_t kMaxDirectBody = size_t{16} << 10;

/// The deployment of a plain inference whose body, which is all there, has kMaxDirectBody bytes at most and
/// unfolds to no more: no content coding, no compressed member of an NPZ. "" for any other request.
std::string direct_inference(const http::Request& request, std::string_view body);

}  // namespace tensormill::endpoints
