/// Archives of packages that come from elsewhere. Thread-safety: all functions from many threads.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "api/http/body.h"
#include "config/settings.h"
#include "server/services/store/package_archive.h"
#include "server/services/store/package_signature.h"
#include "server/services/store/store_quota.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/rows.h"

namespace tensormill::server {

/// The archive's members become blobs; the row that names them, without an owner. The caller has a hold.
/// Throws Error(kInvalidPackage).
storage::PackageRow store_archive(storage::BlobStore& blobs, std::span<const std::byte> archive);
/// The same of an archive with its signature, which is looked at before anything else: Error(kForeignCode)
/// unless one of the keys made it. `folder`, on the store's disk, has the bytes meanwhile.
storage::PackageRow store_signed_archive(storage::BlobStore& blobs, const TrustedKeys& trusted,
                                         StoreQuota& quota, http::BodySource& bytes,
                                         const std::string& folder);

/// Whether packages are loaded signed alone: as packages.require_signature says, else in replicas. Who can
/// write what they share, the database or the bucket, is not thereby one whose code they run. Throws
/// Error(kUsage) for another value, and for a replica that has no key.
bool requires_signatures(const config::Settings& settings, bool is_replica);

/// Throws Error(kForeignCode) unless one of the keys has signed these members: neither who can write the
/// catalog nor who can write the blobs has the server run code. Hashes all of them.
void check_stored_signature(storage::BlobStore& blobs, const TrustedKeys& trusted,
                            const storage::PackageRow& package);

}  // namespace tensormill::server
