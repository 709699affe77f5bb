/// A copy of a whole store, made while servers have the original open: what `tensormill backup` and `restore`
/// do. The copy is a store itself. Thread-safety: one copy into a folder at a time, which a lock sees to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/digest.h"
#include "storage/blob/blob.h"
#include "storage/env/env.h"

namespace tensormill::storage {

/// The store that is copied.
class StoreSource {
public:
  /// A blob's bytes, as long as it lives.
  struct Bytes {
    BlobForm form = BlobForm::kPlain;  ///< that the store has it in; `bytes` are the blob's own
    std::shared_ptr<const void> owner;
    std::string_view bytes;
  };
  virtual ~StoreSource() = default;
  /// What messages call it.
  virtual const std::string& name() const = 0;
  /// Copies the catalog, as it is at one moment, into an SQLite file. False when it changed meanwhile: ask
  /// again.
  virtual bool copy_catalog(const std::string& path) = 0;
  /// From now on no collection takes the blob. False when the store has it no more. A source that cannot hold
  /// collections up says true: then open() may have none.
  virtual bool keep(const Digest& digest) = 0;
  /// Nothing when the store has it no more.
  virtual std::optional<Bytes> open(const Digest& digest) = 0;
};

struct StoreCopy {
  uint64_t blobs = 0;   ///< that the copy names
  uint64_t copied = 0;  ///< of these, not there before
  uint64_t bytes = 0;   ///< uncompressed, of what was copied
};

/// Copies the catalog of `from`, as it is at one moment, and every blob that it names into `to`.
/// Blobs that `to` has already are not copied again, and those that the catalog no longer names go. Until the
/// last step `to` is the store that it was before, whatever fails. Uploads in progress are not part of it.
/// Throws what `from` throws, Error(kInUse) when a process has `to` open, Error(kCorrupt) for what is damaged
/// in `from`, Error(kUnavailable) when `from` changes too fast.
StoreCopy copy_store(Env& env, StoreSource& from, const std::string& to);
/// Of the store in the folder `from`: Error(kNotFound) when it is none.
StoreCopy copy_store(Env& env, const std::string& from, const std::string& to);

}  // namespace tensormill::storage
