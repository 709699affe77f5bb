/// Models in the store: streamed to a blob, understood by an import child, published as a catalog row.
/// Thread-safety: as services::ModelService.
#pragma once

#include <chrono>
#include <string>

#include "api/services/model_service.h"
#include "compiler/target/target.h"
#include "runtime/base/json_fwd.h"
#include "server/services/jobs/child_runner.h"
#include "server/services/keys/caller_quota.h"
#include "server/services/store/blob_collector.h"
#include "server/services/store/graph_cache.h"
#include "server/services/store/store_quota.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

/// What the catalog calls the names of models.
inline constexpr const char* kModelNames = "model";

struct ModelServiceOptions {
  uint64_t max_model_bytes = uint64_t{16} << 30;
  target::Target target = {};  ///< what the optimized graph is for
  std::chrono::milliseconds import_timeout{120'000};
  uint64_t import_memory = uint64_t{4} << 30;
};

class ModelServiceImpl final : public services::ModelService {
public:
  ModelServiceImpl(storage::BlobStore& blobs, storage::Catalog& catalog, ChildRunner& children,
                   BlobCollector& collector, storage::UploadStore& uploads, StoreQuota& quota,
                   CallerQuota& callers, ModelServiceOptions options)
      : blobs_(blobs),
        catalog_(catalog),
        children_(children),
        collector_(collector),
        uploads_(uploads),
        quota_(quota),
        callers_(callers),
        options_(std::move(options)) {}

  services::ImportResult import_model(const services::ImportOptions& options, http::BodySource& bytes,
                                      const services::CallContext& context) override;
  services::Page<services::ModelInfo> list(const services::PageQuery& page) override;
  services::ModelInfo get(const std::string& reference) override;
  void remove(const std::string& reference) override;
  std::string graph_json(const std::string& reference, services::GraphStage stage,
                         const services::CallContext& context) override;

private:
  services::ImportResult import_held(const services::ImportOptions& options, http::BodySource& bytes,
                                     const services::CallContext& context);
  std::string run_import(const storage::Blob& model, const Json& request, const std::stop_token& cancelled);
  services::ImportResult publish(const services::ImportOptions& options, const storage::ModelRow& row);
  void check_name(const services::ImportOptions& options, const Digest& id);
  services::ModelInfo info_of(const storage::ModelRow& row, const std::string& name);
  storage::ModelRow require(const std::string& reference);

  storage::BlobStore& blobs_;
  storage::Catalog& catalog_;
  ChildRunner& children_;
  BlobCollector& collector_;
  storage::UploadStore& uploads_;
  StoreQuota& quota_;
  CallerQuota& callers_;
  ModelServiceOptions options_;
  GraphCache graphs_;
};

/// The row behind a name or an id; nothing when there is none.
std::optional<storage::ModelRow> find_model(storage::Catalog& catalog, const std::string& reference);

}  // namespace tensormill::server
