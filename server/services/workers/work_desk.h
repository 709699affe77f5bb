/// What work asks of the store that it is for, wherever it is done: beside the store, or on a worker
/// elsewhere (server/worker). Thread-safety: all methods from many threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/json_fwd.h"
#include "server/jobs/job_runner.h"
#include "server/services/jobs/tuning_records.h"
#include "server/services/store/package_archive.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

class WorkDesk {
public:
  virtual ~WorkDesk() = default;
  /// The bytes of the model that `resolved`, a resolved compilation, names. Throws Error(kNotFound) when it
  /// was removed.
  virtual std::shared_ptr<const storage::Blob> open_model(jobs::JobContext& context,
                                                          const Json& resolved) = 0;
  /// What records say of the model's kernels. Where that was pending (has_pending_records), `kernels` are all
  /// that the model may have, and `resolved` says afterwards what was chosen.
  virtual Tuned tuned(jobs::JobContext& context, Json& resolved, const std::vector<std::string>& kernels) = 0;
  /// The NPZ of a run's inputs. Throws Error(kNotFound).
  virtual std::shared_ptr<const storage::Blob> open_inputs(jobs::JobContext& context,
                                                           const Json& resolved) = 0;
  /// One of the blobs that `resolved`, a resolved measurement, names. Throws Error(kNotFound).
  virtual std::shared_ptr<const storage::Blob> open_blob(jobs::JobContext& context, const Json& resolved,
                                                         const std::string& name) = 0;
  /// The members of the package that `resolved` names, but for texts. Throws Error(kNotFound).
  virtual MemberBlobs open_members(jobs::JobContext& context, const Json& resolved) = 0;
};

/// The desk beside the store.
class StoreDesk final : public WorkDesk {
public:
  StoreDesk(storage::BlobStore& blobs, storage::Catalog& catalog, TuningRecords& records)
      : blobs_(blobs), catalog_(catalog), records_(records) {}
  std::shared_ptr<const storage::Blob> open_model(jobs::JobContext& context, const Json& resolved) override;
  Tuned tuned(jobs::JobContext& context, Json& resolved, const std::vector<std::string>& kernels) override;
  std::shared_ptr<const storage::Blob> open_inputs(jobs::JobContext& context, const Json& resolved) override;
  std::shared_ptr<const storage::Blob> open_blob(jobs::JobContext& context, const Json& resolved,
                                                 const std::string& name) override;
  /// The same as tuned() for who asks from elsewhere.
  Tuned settled(Json& resolved, const std::vector<std::string>& kernels);
  TuningRecords& records() { return records_; }
  /// The package counts as used.
  MemberBlobs open_members(jobs::JobContext& context, const Json& resolved) override;

private:
  storage::BlobStore& blobs_;
  storage::Catalog& catalog_;
  TuningRecords& records_;
};

/// The blobs that a job's request names, of which `resolved` is the resolved form: what whoever submits such
/// a job has its row name (storage::JobSubmission::needs_blobs). A new member that names one has its place
/// here.
std::vector<Digest> blobs_named_by(const Json& resolved);

/// The blob of the model that a resolved compilation names. Throws Error(kNotFound) when it was removed.
Digest model_blob(storage::Catalog& catalog, const Json& resolved);

/// What records say, as JSON: {"schedules":{KERNEL:[STEPS,RECORD,REASON]},"algorithms":{…}}.
Json tuned_json(const Tuned& tuned);
/// From such JSON. Throws nlohmann's exceptions for another form.
Tuned tuned_from_json(const Json& json);

}  // namespace tensormill::server
