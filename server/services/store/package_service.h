/// Compiled packages in the store. Thread-safety: as services::PackageService.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "api/services/package_service.h"
#include "server/services/jobs/child_runner.h"
#include "server/services/jobs/remote_run.h"
#include "server/services/keys/caller_quota.h"
#include "server/services/store/blob_collector.h"
#include "server/services/store/package_signature.h"
#include "server/services/store/store_quota.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

struct PackageServiceOptions {
  std::chrono::milliseconds run_timeout{30'000};
  uint64_t run_memory = uint64_t{8} << 30;
  int threads = 1;
  std::string folder;            ///< on the store's disk, for archives that arrive and bundles that go
  RemoteRuns* remote = nullptr;  ///< of runs on workers elsewhere; none: they are refused
};

class PackageServiceImpl final : public services::PackageService {
public:
  PackageServiceImpl(storage::BlobStore& blobs, storage::Catalog& catalog, ChildRunner& children,
                     BlobCollector& collector, StoreQuota& quota, CallerQuota& callers,
                     const PackageSigner& signer, const TrustedKeys& trusted, PackageServiceOptions options)
      : blobs_(blobs),
        catalog_(catalog),
        children_(children),
        collector_(collector),
        quota_(quota),
        callers_(callers),
        signer_(signer),
        trusted_(trusted),
        options_(std::move(options)) {}

  services::Page<services::PackageInfo> list(const services::PackageQuery& query) override;
  services::PackageInfo get(const std::string& id) override;
  services::Archive archive(const std::string& id, bool is_signed) override;
  services::ImportedPackage import_package(http::BodySource& bytes,
                                           const services::CallContext& context) override;
  /// An archive of this machine's administrator, who needs no signature; the package's id.
  std::string add_archive(const std::string& path);
  std::shared_ptr<http::Content> code(const std::string& id, services::CodeStage stage) override;
  std::shared_ptr<http::Content> bundle(const std::string& id, const services::BundleOptions& options,
                                        const services::CallContext& context) override;
  void remove(const std::string& id) override;
  void require_room(const std::string& id) override;
  services::RunResult run(const std::string& id, services::NamedTensors inputs,
                          const services::RunOptions& options, const services::CallContext& context) override;

private:
  /// The names of the deployments that use a package.
  using UsedBy = std::map<Digest, std::vector<std::string>>;
  static services::PackageInfo info_of(const storage::PackageRow& row, std::string metadata,
                                       const UsedBy& deployments);
  /// Of each of the packages.
  std::map<Digest, std::string> metadata_of(const std::vector<Digest>& packages);

  storage::BlobStore& blobs_;
  storage::Catalog& catalog_;
  ChildRunner& children_;
  BlobCollector& collector_;
  StoreQuota& quota_;
  CallerQuota& callers_;
  const PackageSigner& signer_;
  const TrustedKeys& trusted_;
  PackageServiceOptions options_;
};

/// Throws Error(kNotFound), also for a text that is no digest.
storage::PackageRow require_package(storage::Catalog& catalog, const std::string& id);

}  // namespace tensormill::server
