/// The commit of a blob as an object, for stores and their writers.
#pragma once

#include "storage/blob/blob_store.h"

namespace tensormill::storage {

class BlobStore::Commit {
public:
  Commit(BlobStore& store, const Digest& digest) : index_(*store.index_), digest_(digest) {
    index_.begin_commit(digest_);
    // Also what turns out to be there already: no row may come to name it.
    store.release(std::span(&digest_, 1));
  }
  ~Commit() { index_.end_commit(digest_); }
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

private:
  BlobIndex& index_;
  const Digest digest_;
};

}  // namespace tensormill::storage
