/// Whole-buffer zstd decompression into a file, so that a compressed blob is mapped and passed like a plain
/// one. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace tensormill::storage {

/// Writes the content of the zstd frames in `stored` to the descriptor `target`, which is rewound then.
/// Throws Error(kCorrupt), with `name` in the message, for anything that is not whole frames;
/// Error(kDiskFull).
void decompress(std::string_view stored, int target, const std::string& name);

}  // namespace tensormill::storage
