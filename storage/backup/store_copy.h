/// A copy of a whole store, made while a server has the original open: what `tensormill backup` and `restore`
/// do. The copy is a store itself. Thread-safety: one copy into a folder at a time, which a lock sees to.
#pragma once

#include <cstdint>
#include <string>

#include "storage/env/env.h"

namespace tensormill::storage {

struct StoreCopy {
  uint64_t blobs = 0;   ///< that the copy names
  uint64_t copied = 0;  ///< of these, not there before
  uint64_t bytes = 0;   ///< uncompressed, of what was copied
};

/// Copies the catalog of the store in `from`, as it is at one moment, and every blob that it names into `to`.
/// Blobs that `to` has already are not copied again, and those that the catalog no longer names go. Until the
/// last step `to` is the store that it was before, whatever fails. Uploads in progress are not part of it.
/// Throws Error(kNotFound) when `from` is no store, Error(kInUse) when a process has `to` open,
/// Error(kCorrupt) for what is damaged in `from`, Error(kUnavailable) when `from` changes too fast.
StoreCopy copy_store(Env& env, const std::string& from, const std::string& to);

}  // namespace tensormill::storage
