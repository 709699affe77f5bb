#include "storage/upload/store_roots.h"

#include <algorithm>
#include <iterator>

namespace tensormill::storage {
namespace {

std::vector<Digest> merged(const std::vector<Digest>& rows, const std::vector<Digest>& uploaded) {
  std::vector<Digest> roots;
  roots.reserve(rows.size() + uploaded.size());
  std::merge(rows.begin(), rows.end(), uploaded.begin(), uploaded.end(), std::back_inserter(roots));
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  return roots;
}

}  // namespace

std::vector<Digest> store_roots(const std::vector<Digest>& rows, UploadStore& uploads) {
  return merged(rows, uploads.roots());
}

std::vector<Digest> store_roots(Catalog& catalog, UploadStore& uploads) {
  // Rows last: the row of a model that was made of an upload is there before the upload goes.
  const std::vector<Digest> uploaded = uploads.roots();
  return merged(catalog.referenced_blobs(), uploaded);
}

uint64_t count_store_roots(Catalog& catalog, UploadStore& uploads) {
  // In the order of store_roots.
  const std::vector<Digest> uploaded = merged({}, uploads.roots());
  const uint64_t rows = catalog.count_referenced_blobs();
  return rows + uploaded.size() - catalog.referenced_among(uploaded).size();
}

std::vector<Digest> store_roots_among(Catalog& catalog, UploadStore& uploads,
                                      const std::vector<Digest>& blobs) {
  // In the order of store_roots.
  const std::vector<Digest> uploaded = uploads.roots();
  std::vector<Digest> kept;
  std::set_intersection(blobs.begin(), blobs.end(), uploaded.begin(), uploaded.end(),
                        std::back_inserter(kept));
  return merged(catalog.referenced_among(blobs), kept);
}

}  // namespace tensormill::storage
