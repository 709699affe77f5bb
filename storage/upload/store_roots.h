/// What a store must keep: the one place that says which blobs are in use. Whoever collects, looks for damage
/// or counts asks here. Thread-safety: as the stores that are queried.
#pragma once

#include <vector>

#include "runtime/base/digest.h"
#include "storage/catalog/catalog.h"
#include "storage/upload/upload_store.h"

namespace tensormill::storage {

/// Every blob that a row of the catalog names (models, packages, deployments, logs of jobs), and those of
/// finished uploads; sorted, each once.
std::vector<Digest> store_roots(Catalog& catalog, UploadStore& uploads);
/// How many those are; holds none of them in memory but those of uploads.
uint64_t count_store_roots(Catalog& catalog, UploadStore& uploads);
/// The same as the first, where the catalog is closed and has named `rows`, sorted.
std::vector<Digest> store_roots(const std::vector<Digest>& rows, UploadStore& uploads);
/// Those of `blobs`, sorted and each once, that store_roots(catalog, uploads) has; sorted. Costs what their
/// number does, and that of uploads.
std::vector<Digest> store_roots_among(Catalog& catalog, UploadStore& uploads,
                                      const std::vector<Digest>& blobs);

}  // namespace tensormill::storage
