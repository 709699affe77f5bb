/// LevelDB's table of sorted keys, as TensorFlow writes the index of a checkpoint's variables. Thread-safety:
/// pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tensormill::frontend::wire {

/// Keys and values of a whole table. Every block's checksum is checked; blocks are not packed. Throws
/// Error(kInvalidModel) with the byte: broken, keys that are not sorted, or more than a million entries or
/// 256 MiB of keys and values; Error(kNotSupported) for packed blocks.
std::map<std::string, std::string> read_sstable(std::string_view bytes);

}  // namespace tensormill::frontend::wire
