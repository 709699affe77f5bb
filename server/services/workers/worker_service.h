/// Workers on other machines, as this server sees them: what they may have, what they tell, what they bring.
/// It keeps nothing that another server over the same catalog would have to know: a lease is a claimed job.
/// Thread-safety: as services::WorkerService.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/services/worker_service.h"
#include "runtime/base/json_fwd.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/worker_pool.h"
#include "server/metrics/registry.h"
#include "server/services/jobs/tuning_records.h"
#include "server/services/store/blob_collector.h"
#include "server/services/store/package_signature.h"
#include "server/services/store/store_quota.h"
#include "server/services/workers/work_desk.h"
#include "server/services/workers/worker_polls.h"
#include "storage/blob/blob_store.h"

namespace tensormill::server {

struct WorkerServiceOptions {
  std::chrono::milliseconds lease{30'000};
  std::string logs;          ///< folder of live logs: WorkerPoolOptions::folder
  std::string folder;        ///< on the store's disk, for archives that arrive
  std::string compiler;      ///< driver::compiler_build()
  bool shares_logs = false;  ///< live logs are the catalog's, for all servers to show: WorkerPoolOptions
  uint64_t max_output_bytes = uint64_t{256} << 20;  ///< of a run
};

class WorkerServiceImpl final : public services::WorkerService {
public:
  WorkerServiceImpl(jobs::JobQueue& queue, storage::BlobStore& blobs, BlobCollector& collector,
                    StoreQuota& quota, StoreDesk& desk, const TrustedKeys& trusted,
                    metrics::Registry& registry, WorkerServiceOptions options);

  void lease(const services::WorkerOffer& offer, const services::CallContext& context,
             services::Done<std::optional<services::WorkerLease>> done) override;
  void leave(const services::WorkerLeave& leave, const services::CallContext& context) override;
  void take_back(const std::string& lease) override { polls_.take_back(lease); }
  services::WorkerBeatAnswer beat(const std::string& lease, const services::WorkerBeat& beat,
                                  const services::CallContext& context) override;
  std::shared_ptr<http::Content> blob(const std::string& lease, const std::string& digest,
                                      const services::CallContext& context) override;
  std::string tuned(const std::string& lease, const std::vector<std::string>& kernels,
                    const services::CallContext& context) override;
  void finish(const std::string& lease, http::BodySource& body,
              const services::CallContext& context) override;
  void import_results(http::BodySource& body, const services::CallContext& context) override;
  services::Page<services::WorkerInfo> list(const services::PageQuery& page) override;
  services::WorkerInfo get(const std::string& name) override;
  services::WorkerInfo set_state(const std::string& name, const std::string& state) override;

  /// Those that wait for work learn that there is none, and nobody gets any more.
  void stop() { polls_.stop(); }

private:
  /// The job of a lease that is not over.
  storage::JobRow live_job(const std::string& lease);
  /// The job of a lease that this caller holds. Throws as services::WorkerService says.
  storage::JobRow held_job(const std::string& lease, const services::CallContext& context);
  /// Neither drained nor revoked, by whichever server.
  bool may_have_work(const std::string& owner);
  std::optional<services::WorkerLease> make_lease(const storage::JobRow& job);
  /// {"model":{"digest"}} or the members of a package: all that the work reads.
  Json inputs_of(const storage::JobRow& job);
  /// The worker's row, written where it says something new or was not heard for a while.
  storage::WorkerRow met(const services::WorkerOffer& offer, const services::CallContext& context);
  /// The worker was heard; what it is was said before.
  void heard(const std::string& owner, const std::optional<std::string>& status);
  /// Whether this process has not renewed the lease for a while.
  bool is_due(const std::string& lease);
  /// Appends what is new of the live log; its length then.
  int64_t append_log(const storage::JobRow& job, const services::WorkerBeat& beat);
  /// `asked` is noted as done with the end; what is read takes its memory of `memory`, which may be null.
  bool end_job(const storage::JobRow& job, http::BodySource& body, const storage::RepeatKey& asked,
               MemoryShare* memory);
  void finish_live(const storage::JobRow& job, const std::string& lease, http::BodySource& body,
                   const storage::RepeatKey& asked, MemoryShare* memory);
  services::WorkerInfo info_of(const storage::WorkerRow& row, const std::vector<storage::JobRow>& running);
  std::vector<storage::JobRow> running_jobs();

  jobs::JobQueue& queue_;
  storage::Catalog& catalog_;
  storage::BlobStore& blobs_;
  BlobCollector& collector_;
  StoreQuota& quota_;
  StoreDesk& desk_;
  const TrustedKeys& trusted_;
  metrics::Registry& registry_;
  const WorkerServiceOptions options_;
  std::mutex mutex_;
  std::map<std::string, std::chrono::steady_clock::time_point> renewed_;  ///< by lease
  struct Heard {
    std::chrono::steady_clock::time_point at;  ///< when its row was written
    std::string facts;                         ///< as they are there; "" where that is not known
  };
  std::map<std::string, Heard> heard_;  ///< by owner
  std::mutex logs_mutex_;
  WorkerPolls polls_;
};

/// The labels by which a worker may be found and the verbs that it may do: what it claims, of what its key
/// grants. Throws Error(kForbidden).
std::vector<WorkerWants> worker_wants(const services::WorkerOffer& offer,
                                      const std::vector<std::string>& scopes, bool is_same_compiler);

}  // namespace tensormill::server
