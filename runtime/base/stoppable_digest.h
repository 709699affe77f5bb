/// Digests of what takes seconds to hash, for who may be stopped meanwhile. Thread-safety: pure
/// function.
#pragma once

#include <algorithm>
#include <span>
#include <stop_token>

#include "runtime/base/digest.h"
#include "runtime/base/error.h"

namespace tensormill {

/// Digest::of(bytes). Throws Error(kCancelled) when `stop` has stopped, which it looks at every few
/// milliseconds.
inline Digest digest_unless_stopped(std::span<const std::byte> bytes, const std::stop_token& stop) {
  constexpr size_t kPiece = size_t{4} << 20;
  Hasher hasher;
  while (true) {
    if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "hash: the server stops");
    if (bytes.empty()) return hasher.finish();
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kPiece));
    hasher.update(piece);
    bytes = bytes.subspan(piece.size());
  }
}

}  // namespace tensormill
