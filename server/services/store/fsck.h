/// Looks at a whole store: every blob's bytes, every row's blobs, the database itself. Changes nothing.
/// Thread-safety: one thread; the caller has the store to itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"
#include "storage/upload/upload_store.h"

namespace tensormill::server {

struct FsckReport {
  uint64_t blobs = 0;
  uint64_t bytes = 0;                 ///< as stored
  uint64_t unreferenced = 0;          ///< blobs that nothing names: garbage, no damage
  std::vector<std::string> problems;  ///< what is damaged or missing, one sentence each
};

FsckReport check_store(storage::BlobStore& blobs, storage::Catalog& catalog, storage::UploadStore& uploads);

}  // namespace tensormill::server
