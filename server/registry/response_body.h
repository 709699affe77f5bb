/// The bytes of an answer that cpprestsdk's client got. To be included where that client is.
/// Thread-safety: one thread at a time for an answer.
#pragma once

#include <cpprest/http_client.h>
#include <cpprest/rawptrstream.h>

#include <functional>
#include <string>
#include <string_view>

namespace tensormill::registry {

/// Calls `take` with the body, part by part. Throws what `take` throws, and what the client throws where the
/// body does not come to its end.
inline void read_body(const web::http::http_response& response,
                      const std::function<void(std::string_view)>& take) {
  constexpr size_t kPart = size_t{1} << 20;
  concurrency::streams::istream body = response.body();
  std::string part(kPart, '\0');
  for (;;) {
    concurrency::streams::rawptr_buffer<uint8_t> buffer(reinterpret_cast<uint8_t*>(part.data()), part.size(),
                                                        std::ios::out);
    const size_t size = body.read(buffer, part.size()).get();
    if (size == 0) return;
    take(std::string_view(part).substr(0, size));
  }
}

}  // namespace tensormill::registry
