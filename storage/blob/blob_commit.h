/// The commit of a blob as an object, for stores and their writers.
#pragma once

#include <set>
#include <utility>

#include "storage/blob/blob_store.h"

namespace tensormill::storage {

class BlobStore::Commit {
public:
  Commit(BlobStore& store, const Digest& digest) : store_(store), committed_{digest} {
    store_.index_->begin_commit(digest);
  }
  /// Releases the blob, also one that turned out to be there already: no row may come to name it. Not before
  /// it is stored: a collection that looked meanwhile would not find it, and nobody would look again.
  ~Commit() {
    const Digest digest = *committed_.begin();
    store_.release(std::move(committed_));
    store_.index_->end_commit(digest);
  }
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

private:
  BlobStore& store_;
  std::set<Digest> committed_;  ///< one: its node is made here, so that the release cannot fail
};

}  // namespace tensormill::storage
