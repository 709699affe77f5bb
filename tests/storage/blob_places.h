/// Places where the bytes of a blob store lie, for the tests that every implementation must pass.
#pragma once

#include <memory>
#include <string>

#include "storage/blob/blob_store.h"

namespace tensormill::storage {

class BlobPlace {
public:
  virtual ~BlobPlace() = default;
  /// A store as a new process on another machine would have it.
  virtual std::unique_ptr<BlobStore> open() = 0;
  virtual bool has(const Digest& digest, BlobForm form) = 0;
  /// Another first byte.
  virtual void damage(const Digest& digest, BlobForm form) = 0;
  /// Without its last byte.
  virtual void cut(const Digest& digest, BlobForm form) = 0;
  /// Files and objects of writes that came to nothing.
  virtual size_t leftovers() = 0;
};

/// "posix", "memory", "s3", or "s3_shared": with an index that replicas share.
std::unique_ptr<BlobPlace> make_blob_place(const std::string& kind);

}  // namespace tensormill::storage
