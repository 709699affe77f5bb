/// Whole-buffer zstd decompression into a memory file, so that a compressed blob is mapped and passed like a
/// plain one. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/file.h"

namespace tensormill::storage {

/// Descriptor of an unnamed file with the content of the zstd frames in `stored`. Throws Error(kCorrupt),
/// with `name` in the message, for anything that is not whole frames.
FileDescriptor decompress_to_memory(std::string_view stored, const std::string& name);

}  // namespace tensormill::storage
