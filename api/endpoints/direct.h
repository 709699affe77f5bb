/// Which requests may run on the thread that reads them, inferences whose body costs next to nothing to read,
/// and which of the others give way to all that is quick. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/http/message.h"

namespace tensormill::endpoints {

/// What is parsed on a thread that others wait for.
inline constexpr size_t kMaxDirectBody = size_t{16} << 10;

/// The deployment of a plain inference whose body, which is all there, has kMaxDirectBody bytes at most and
/// unfolds to no more: no content coding, no compressed member of an NPZ. "" for any other request.
std::string direct_inference(const http::Request& request, std::string_view body);

/// The deployment of an inference with its default version, whatever its body. "" for any other request.
std::string inferred_deployment(std::string_view target);

/// Whether it may take long to read and unfold the body: it is larger than kMaxDirectBody and `ordinary`
/// bytes, of unknown length, coded, or has compressed members; or whether the request is for a collection.
/// Not so where a package is loaded: the threads of its batches, which others wait for, would give way as
/// well. `body` is the whole body, or "" when it has not come yet; `ordinary`: what those have that are known
/// to be worth their time, such as an inference of a picture that is no larger than the one before.
bool is_bulk(const http::Request& request, std::string_view body, uint64_t ordinary);

}  // namespace tensormill::endpoints
