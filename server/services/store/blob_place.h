/// Where the settings say that blobs are: in the folder of the store, or in S3. Thread-safety: pure
/// functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "config/settings.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

/// What processes that share a store have in common; empty for a lone one.
struct SharedPlace {
  /// The store's id, given the one that the folder knows, or "".
  std::function<std::string(const std::string& known)> store_id = nullptr;
  std::function<std::unique_ptr<storage::BlobIndex>()> index = nullptr;
};

/// The blobs of the store in `root`, whose catalog the caller has open. Throws what the store throws, and
/// Error(kUsage) where the settings name another place than the store has been using.
std::unique_ptr<storage::BlobStore> open_blobs(const config::Settings& settings, storage::Env& env,
                                               const std::string& root, const SharedPlace& shared = {});
struct Migrated {
  uint64_t blobs = 0;   ///< of the store
  uint64_t copied = 0;  ///< of these, not there before
  uint64_t bytes = 0;   ///< uncompressed, of what was copied
};

/// Copies all blobs of the store in `root`, whose catalog is the caller's, to `to` ("s3://…", or
/// "folder"), each verified, and makes that the store's place once all are there. What an earlier, unfinished
/// run copied is not copied again. The old ones stay. `tell` hears of each. The catalog knows the bucket
/// then, wherever it is moved to. Throws Error(kUsage) where they are there.
Migrated migrate_blobs(const config::Settings& settings, storage::Env& env, const std::string& root,
                       storage::Catalog& catalog, const std::string& to,
                       const std::function<void(const Migrated&)>& tell);
/// "s3://…" where the store in `root` has its blobs in S3; else "".
std::string place_of_blobs(storage::Env& env, const std::string& root);
/// Whether they are there: "s3://…", or "folder". Throws Error(kUsage) for what is no such place.
bool has_blobs_in(storage::Env& env, const std::string& root, const std::string& place);

}  // namespace tensormill::server
