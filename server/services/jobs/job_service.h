/// Jobs over the durable queue: submission resolves what was requested, so that the action key covers what
/// will really be done. Thread-safety: as services::JobService.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/services/job_service.h"
#include "compiler/target/target.h"
#include "runtime/base/json_fwd.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/worker_pool.h"
#include "server/metrics/registry.h"
#include "server/services/jobs/tuning_records.h"
#include "server/services/keys/caller_quota.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

/// A member of the body that is wrong, with the pointer to it.
[[noreturn]] void refuse_job(ErrorCode code, const std::string& pointer, const std::string& detail);

struct JobServiceOptions {
  int64_t max_queued = 256;
};

class JobServiceImpl final : public services::JobService {
public:
  JobServiceImpl(jobs::JobQueue& queue, jobs::WorkerPool& workers, storage::BlobStore& blobs,
                 storage::Catalog& catalog, CallerQuota& callers, TuningRecords& records,
                 metrics::Registry& registry, target::Target host, JobServiceOptions options)
      : queue_(queue),
        workers_(workers),
        blobs_(blobs),
        catalog_(catalog),
        callers_(callers),
        records_(records),
        registry_(registry),
        host_(std::move(host)),
        options_(options) {}

  services::Submission submit_compile(const services::CompileRequest& request,
                                      const services::SubmitOptions& options,
                                      const services::CallContext& context) override;
  services::Submission submit_tune(const services::TuneRequest& request,
                                   const services::SubmitOptions& options,
                                   const services::CallContext& context) override;
  services::Submission submit_benchmark(const services::BenchmarkRequest& request,
                                        const services::SubmitOptions& options,
                                        const services::CallContext& context) override;
  services::Submission submit_verify(const services::VerifyRequest& request,
                                     const services::SubmitOptions& options,
                                     const services::CallContext& context) override;
  services::Submission submit_report(const services::ReportRequest& request,
                                     const services::SubmitOptions& options,
                                     const services::CallContext& context) override;
  services::Page<services::Job> list(const services::JobQuery& query) override;
  services::Job get(const std::string& id) override;
  services::Job wait(const std::string& id, std::chrono::milliseconds timeout,
                     const services::CallContext& context) override;
  services::CancelResult cancel(const std::string& id, const services::CallContext& context) override;
  services::Job retry(const std::string& id, const services::CallContext& context) override;
  services::JobEvents events(const std::string& id, int64_t after, std::chrono::milliseconds timeout,
                             const services::CallContext& context) override;
  std::vector<services::PlacedEvent> all_events(int64_t after, std::chrono::milliseconds timeout,
                                                const services::CallContext& context) override;
  int64_t last_event() override { return catalog_.last_event_position(); }
  std::shared_ptr<http::Content> log(const std::string& id) override;
  std::string report(const std::string& id, services::ReportForm form) override;

private:
  storage::Submitter submitter_of(const services::CallContext& context) const;
  Json resolve(const services::CompileRequest& request, const storage::ModelRow& model);
  storage::ModelRow model_of(const services::CompileRequest& request);
  services::Submission submit(storage::JobSubmission submission, const Json& form,
                              const services::SubmitOptions& options, const services::CallContext& context);
  storage::Submitted submit_whole(const storage::JobSubmission& submission);
  bool is_whole(const storage::JobRow& job);

  jobs::JobQueue& queue_;
  jobs::WorkerPool& workers_;
  storage::BlobStore& blobs_;
  storage::Catalog& catalog_;
  CallerQuota& callers_;
  TuningRecords& records_;
  metrics::Registry& registry_;
  target::Target host_;
  JobServiceOptions options_;
};

}  // namespace tensormill::server
