// Verify jobs: what they are asked for is there when they are made.
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/package/metadata.h"
#include "server/services/deployments/host_runs.h"
#include "server/services/jobs/job_service.h"
#include "server/services/workers/work_desk.h"

namespace tensormill::server {

namespace {

/// A crash of a child is tried once more.
constexpr int kVerifyAttempts = 2;

}  // namespace

services::Submission JobServiceImpl::submit_verify(const services::VerifyRequest& request,
                                                   const services::SubmitOptions& options,
                                                   const services::CallContext& context) {
  const auto id = Digest::parse(request.package);
  const auto package = id ? catalog_.find_package(*id) : std::nullopt;
  if (!package)
    refuse_job(ErrorCode::kInvalidArgument, "/package", "there is no package \"" + request.package + "\"");
  const package::Metadata metadata = package::metadata_from_json(blobs_.open(package->id)->text());
  const auto model = Digest::parse(metadata.model_digest);
  if (!model || !catalog_.find_model(*model))
    refuse_job(ErrorCode::kInvalidArgument, "/package",
               "its model " + metadata.model_digest + " is not here, which the reference is made of");
  // They may be an upload's: they must not go before the row names them.
  const storage::BlobHold hold(blobs_);
  if (!blobs_.keep(Digest::parse(request.inputs).value()))
    refuse_job(ErrorCode::kInvalidArgument, "/inputs", "there is no blob " + request.inputs);
  if (request.on.empty() && !host_runs(target::parse_target(metadata.target, {}), host_))
    refuse_job(ErrorCode::kNotSupported, "/on",
               "this machine cannot run code for " + metadata.target + "; name a worker's labels");
  storage::JobSubmission submission;
  submission.kind = "verify";
  submission.subject = metadata.model_digest;
  submission.needs_models = {*model};
  submission.needs_package = package->id;
  submission.request = Json{{"package", request.package}}.dump();
  submission.max_attempts = kVerifyAttempts;
  submission.reuse_result = false;
  Json form = {{"kind", "verify"},     {"package", package->id.text()}, {"inputs", request.inputs},
               {"rtol", request.rtol}, {"atol", request.atol},          {"timeout_s", request.timeout_s}};
  if (!request.on.empty()) form["on"] = request.on;
  submission.needs_blobs = blobs_named_by(form);
  // It may be tried again.
  submission.keeps_blobs = true;
  return submit(std::move(submission), form, options, context);
}

}  // namespace tensormill::server
