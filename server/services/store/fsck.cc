#include "server/services/store/fsck.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "storage/upload/store_roots.h"

namespace tensormill::server {

FsckReport check_store(storage::BlobStore& blobs, storage::Catalog& catalog, storage::UploadStore& uploads) {
  FsckReport report;
  report.problems = catalog.check();
  const std::vector<Digest> named = storage::store_roots(catalog, uploads);
  std::vector<Digest> stored;
  for (const storage::BlobInfo& blob : blobs.list()) {
    ++report.blobs;
    report.bytes += blob.stored_bytes;
    stored.push_back(blob.digest);
    if (!std::binary_search(named.begin(), named.end(), blob.digest)) ++report.unreferenced;
    try {
      blobs.verify(blob.digest);
    } catch (const Error& error) {
      report.problems.push_back("blob " + blob.digest.text() + ": " + error.message());
    }
  }
  for (const Digest& digest : named) {
    if (std::binary_search(stored.begin(), stored.end(), digest)) continue;
    report.problems.push_back("blob " + digest.text() + " is missing and a row names it");
  }
  return report;
}

}  // namespace tensormill::server
