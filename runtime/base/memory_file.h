/// Files that live in memory and have no name in any folder: what processes hand to each other.
/// Thread-safety: the function may be called from any thread.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/file.h"

namespace tensormill {

/// A memory file with these bytes, closed on exec; reading starts at its beginning. `name` is for messages
/// and for /proc. Throws Error(kIo).
FileDescriptor memory_file(const std::string& name, std::string_view bytes = "");

}  // namespace tensormill
